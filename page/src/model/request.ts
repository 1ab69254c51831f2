// SPDX-License-Identifier: Apache-2.0
// A branch of a chat as the body of a request, and that as a line for a shell.
import { pathTo, type Chat, type Turn } from './tree';

type Body = Record<string, unknown>;

// The body that asks for the answer `turn`, whose parent is in the chat.
export function requestBody(chat: Chat, turn: Turn): Body {
  const messages: Body[] = chat.system.trim() === '' ? [] : [{ role: 'system', content: chat.system }];
  for (const one of pathTo(chat, turn.parent)) {
    messages.push(messageOf(one));
  }
  const body: Body = { ...turn.options, messages, stream: true, stream_options: { include_usage: true } };
  if (turn.prefix !== undefined) {
    const last: Body = { role: 'assistant', content: turn.prefix };
    if (turn.prefixReasoning) {
      last.reasoning_content = turn.prefixReasoning;
    }
    messages.push(last);
    body.continue_final_message = true;
    body.add_generation_prompt = false;
  }
  return body;
}

function messageOf(turn: Turn): Body {
  if (turn.role === 'tool') {
    return { role: 'tool', tool_call_id: turn.callId, content: turn.content };
  }
  if (turn.role === 'user') {
    return { role: 'user', content: withFiles(turn) };
  }
  const message: Body = { role: 'assistant', content: turn.content };
  if (turn.reasoning) {
    message.reasoning_content = turn.reasoning;
  }
  if (turn.calls && turn.calls.length > 0) {
    message.tool_calls = turn.calls.map(({ id, name, arguments: given, isCustom }) =>
      isCustom ? { id, type: 'custom', custom: { name, input: given } } : { id, type: 'function', function: { name, arguments: given } },
    );
  }
  return message;
}

// A user's text with the texts of its files before it.
export function withFiles(turn: Pick<Turn, 'content' | 'files'>): string {
  const files = (turn.files ?? []).map((file) => `File ${file.name}:\n\n${file.text.trimEnd()}\n\n`);
  return files.join('') + turn.content;
}

// The request as a command; single quotes keep everything but themselves.
export function curlLine(address: string, body: Body, hasKey: boolean): string {
  const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;
  const key = hasKey ? ' -H "Authorization: Bearer $SAKER_API_KEY"' : '';
  const type = "-H 'Content-Type: application/json'";
  return `curl -N ${quoted(address + '/v1/chat/completions')} ${type}${key} -d ${quoted(JSON.stringify(body))}`;
}
