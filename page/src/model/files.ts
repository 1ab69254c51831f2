// SPDX-License-Identifier: Apache-2.0
// Chats as files: JSON that can be read again, and Markdown for people.
import { pathTo, type Chat, type Token, type Turn } from './tree';
import { withFiles } from './request';

const kFormat = 'saker-chats';

export function chatsToJson(chats: Chat[]): string {
  return JSON.stringify({ format: kFormat, version: 1, chats }, null, 1);
}

// Reads what chatsToJson() wrote. Throws one line for anything else.
export function chatsFromJson(text: string): Chat[] {
  let data: unknown;
  try {
    data = JSON.parse(text);
  } catch {
    throw new Error('the file is no JSON');
  }
  const { format, chats } = (data ?? {}) as { format?: unknown; chats?: unknown };
  if (format !== kFormat || !Array.isArray(chats)) {
    throw new Error(`expected a file with "format": "${kFormat}" and a list of chats`);
  }
  return chats.map(checkedChat);
}

function checkedChat(given: unknown, index: number): Chat {
  const chat = given as Chat;
  const isChat =
    isObject(chat) && isText(chat.id) && isText(chat.title) && isText(chat.system) && isObject(chat.turns) &&
    (chat.leaf === null || (isText(chat.leaf) && Object.hasOwn(chat.turns, chat.leaf)));
  if (!isChat) {
    throw new Error(`chat ${index} of the file lacks its id, title, system prompt or turns`);
  }
  const turns: Record<string, Turn> = {};
  for (const [id, turn] of Object.entries(chat.turns)) {
    if (!isObject(turn) || turn.id !== id || !isText(turn.content) || !isRole(turn.role) || !isParent(chat, turn)) {
      throw new Error(`chat ${index} of the file has a broken turn: ${id}`);
    }
    turns[id] = cleanTurn(turn);
  }
  const { id, title, system, leaf } = chat;
  const clean = { id, title, system, leaf, turns, created: Number(chat.created) || 0, updated: Number(chat.updated) || 0 };
  if (hasCycle(clean)) {
    throw new Error(`chat ${index} of the file has turns in a circle`);
  }
  return clean;
}

// The members that are there and of the right type.
function cleanTurn(turn: Turn): Turn {
  const clean: Turn = {
    id: turn.id,
    parent: turn.parent,
    role: turn.role,
    content: turn.content,
    created: Number(turn.created) || 0,
  };
  for (const name of ['reasoning', 'callId', 'model', 'prefix', 'prefixReasoning', 'finish', 'error'] as const) {
    if (isText(turn[name])) {
      clean[name] = turn[name];
    }
  }
  if (turn.role === 'assistant') {
    clean.status = turn.status === 'done' || turn.status === 'failed' ? turn.status : 'stopped';
  }
  if (isObject(turn.options)) {
    clean.options = turn.options;
  }
  clean.files = list(turn.files, (file) => isText(file.name) && isText(file.text));
  clean.calls = list(turn.calls, (call) => isText(call.id) && isText(call.name) && isText(call.arguments) && [undefined, true].includes(call.isCustom));
  clean.tokens = list(turn.tokens, isToken);
  clean.prefixTokens = list(turn.prefixTokens, isToken);
  if (isObject(turn.statistics) && Object.values(turn.statistics).every(isNumber)) {
    clean.statistics = turn.statistics;
  }
  return clean;
}

function list<T>(value: T[] | undefined, isGood: (one: T) => boolean): T[] | undefined {
  return Array.isArray(value) && value.every((one) => isObject(one) && isGood(one)) ? value : undefined;
}

function isToken(token: Token): boolean {
  return isText(token.text) && isNumber(token.size) && isNumber(token.logprob) && areAlternatives(token.top);
}

function areAlternatives(value: unknown): boolean {
  return Array.isArray(value) && value.every((one) => Array.isArray(one) && isText(one[0]) && isNumber(one[1]));
}

function isText(value: unknown): value is string {
  return typeof value === 'string';
}

function isNumber(value: unknown): value is number {
  return typeof value === 'number';
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isRole(role: unknown): boolean {
  return role === 'user' || role === 'assistant' || role === 'tool';
}

function isParent(chat: Chat, turn: Turn): boolean {
  return turn.parent === null || (typeof turn.parent === 'string' && Object.hasOwn(chat.turns, turn.parent));
}

function hasCycle(chat: Chat): boolean {
  const good = new Set<string | null>([null]);
  for (const start of Object.keys(chat.turns)) {
    const walked: string[] = [];
    for (let id: string | null = start; !good.has(id); id = chat.turns[id as string].parent) {
      if (walked.includes(id as string)) {
        return true;
      }
      walked.push(id as string);
    }
    walked.forEach((id) => good.add(id));
  }
  return false;
}

// The branch that is shown.
export function chatToMarkdown(chat: Chat): string {
  const names = { user: 'You', assistant: 'Answer', tool: 'Tool result' };
  const parts = [`# ${chat.title || 'Chat'}`];
  if (chat.system.trim() !== '') {
    parts.push(`## System prompt\n\n${chat.system}`);
  }
  for (const turn of pathTo(chat)) {
    const reasoning = turn.reasoning ? `> ${turn.reasoning.trim().replaceAll('\n', '\n> ')}\n\n` : '';
    const calls = (turn.calls ?? []).map((call) => `\n\n\`${call.name}(${call.arguments})\``).join('');
    parts.push(`## ${names[turn.role]}\n\n${reasoning}${withFiles(turn)}${calls}`);
  }
  return parts.join('\n\n') + '\n';
}
