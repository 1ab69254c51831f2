// SPDX-License-Identifier: Apache-2.0
// Log-probabilities of one answer in the base and in an adapter.
import { ask } from './client';

export interface TokenDifference {
  text: string;
  base: number;
  other: number;
}

interface Scores {
  tokens: number[];
  views: Record<string, { logprobs: (number | null)[]; sum: number }>;
}

// `body` asks for the answer whose text is `content`; `views` are two names as /v1/score takes them.
export async function compareTokens(
  body: Record<string, unknown>,
  content: string,
  views: [string, string],
): Promise<TokenDifference[]> {
  const { messages, tools, chat_template_kwargs } = body;
  const prompt = await ask<{ tokens: number[] }>('/tokenize', { messages, tools, chat_template_kwargs });
  const answer = await ask<{ tokens: { id: number; piece: string }[] }>('/tokenize', { content, with_pieces: true });
  const scored = await ask<Scores>('/v1/score', {
    prompt_tokens: prompt.tokens,
    tokens: answer.tokens.map((token) => token.id),
    views,
  });
  const [base, other] = views.map((view) => scored.views[view].logprobs.slice(-answer.tokens.length));
  return answer.tokens.map((token, i) => ({
    text: token.piece,
    base: base[i] ?? 0,
    other: other[i] ?? 0,
  }));
}
