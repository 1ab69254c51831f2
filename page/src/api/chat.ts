// SPDX-License-Identifier: Apache-2.0
// A streamed chat completion, put together piece by piece.
import { createParser } from 'eventsource-parser';
import { send } from './client';
import type { Call, Statistics, Token } from '../model/tree';

export interface Answer {
  content: string;
  reasoning: string;
  calls: Call[];
  tokens: Token[];
  finish: string;
  statistics: Statistics;
}

interface LogprobJson {
  token: string;
  bytes: number[];
  logprob: number | null;
  top_logprobs: { token: string; logprob: number | null }[];
}

interface Chunk {
  choices?: {
    delta: {
      content?: string | null;
      reasoning_content?: string;
      tool_calls?: {
        index: number;
        id?: string;
        function?: { name?: string; arguments?: string };
        custom?: { name?: string; input?: string };
      }[];
    };
    logprobs?: { content?: LogprobJson[] } | null;
    finish_reason?: string | null;
  }[];
  usage?: {
    prompt_tokens: number;
    completion_tokens: number;
    prompt_tokens_details?: { cached_tokens?: number };
    completion_tokens_details?: {
      reasoning_tokens?: number;
      accepted_prediction_tokens?: number;
      rejected_prediction_tokens?: number;
    };
  } | null;
  error?: { message: string };
}

const kLeast = -1e9; // A log-probability that is no number.

export function emptyAnswer(prefix = '', prefixReasoning = '', prefixTokens: Token[] = []): Answer {
  return {
    content: prefix,
    reasoning: prefixReasoning,
    calls: [],
    tokens: [...prefixTokens],
    finish: '',
    statistics: {
      promptTokens: 0, cachedTokens: 0, answerTokens: 0, reasoningTokens: 0, acceptedTokens: 0, draftedTokens: 0,
      firstMs: 0, totalMs: 0, reasoningMs: 0,
    },
  };
}

// Adds a chunk that came `ms` after the request. Throws for a chunk that is an error.
export function addChunk(answer: Answer, chunk: Chunk, ms: number): void {
  if (chunk.error) {
    throw new Error(chunk.error.message);
  }
  const choice = chunk.choices?.[0];
  const statistics = answer.statistics;
  if (choice) {
    const { content, reasoning_content: reasoning, tool_calls: calls } = choice.delta;
    if (content || reasoning || calls) {
      statistics.firstMs ||= ms;
      statistics.totalMs = ms;
    }
    answer.content += content ?? '';
    if (reasoning) {
      answer.reasoning += reasoning;
      statistics.reasoningMs = ms - statistics.firstMs;
    }
    for (const part of calls ?? []) {
      const call = (answer.calls[part.index] ??= { id: '', name: '', arguments: '' });
      call.id ||= part.id ?? '';
      call.name += part.function?.name ?? part.custom?.name ?? '';
      call.arguments += part.function?.arguments ?? part.custom?.input ?? '';
      if (part.custom) {
        call.isCustom = true;
      }
    }
    answer.tokens.push(...(choice.logprobs?.content ?? []).map(tokenOf));
    answer.finish = choice.finish_reason ?? answer.finish;
  }
  if (chunk.usage) {
    const { usage } = chunk;
    const details = usage.completion_tokens_details ?? {};
    statistics.promptTokens = usage.prompt_tokens;
    statistics.cachedTokens = usage.prompt_tokens_details?.cached_tokens ?? 0;
    statistics.answerTokens = usage.completion_tokens;
    statistics.reasoningTokens = details.reasoning_tokens ?? 0;
    statistics.acceptedTokens = details.accepted_prediction_tokens ?? 0;
    statistics.draftedTokens = statistics.acceptedTokens + (details.rejected_prediction_tokens ?? 0);
  }
}

function tokenOf(json: LogprobJson): Token {
  return {
    text: json.token,
    size: json.bytes.length,
    logprob: json.logprob ?? kLeast,
    top: json.top_logprobs.map((one) => [one.token, one.logprob ?? kLeast]),
  };
}

export interface Listener {
  changed(answer: Answer): void;
  event?(data: string): void; // Each event as it came.
}

// Runs until the answer's end. Throws ServerError, a failure of the network, or AbortError.
export async function streamChat(
  body: Record<string, unknown>,
  answer: Answer,
  listener: Listener,
  signal: AbortSignal,
): Promise<void> {
  const begin = performance.now();
  const response = await send('/v1/chat/completions', body, signal);
  let isWhole = false;
  const parser = createParser({
    onEvent({ data }) {
      listener.event?.(data);
      if (data === '[DONE]') {
        isWhole = true;
        return;
      }
      addChunk(answer, JSON.parse(data) as Chunk, performance.now() - begin);
      listener.changed(answer);
    },
  });
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) {
      break;
    }
    parser.feed(value);
  }
  if (!isWhole) {
    throw new Error('the connection ended in the middle of the answer');
  }
}
