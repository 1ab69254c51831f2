// SPDX-License-Identifier: Apache-2.0
// The tokens of an answer, coloured by probability; an alternative can be continued.
import { memo } from './memo';
import { useState } from 'preact/hooks';
import type { Token } from '../model/tree';

export function percent(logprob: number): string {
  const value = Math.exp(logprob) * 100;
  return value >= 99.95 ? '100 %' : `${value.toFixed(value < 0.095 ? 3 : 1)} %`;
}

// White space that would not be seen.
export function visible(text: string): string {
  return text.replaceAll('\n', '⏎').replaceAll('\t', '⇥').replaceAll(' ', '␣') || '∅';
}

// The text before token `index`; nothing if that is within a character.
export function textBefore(tokens: Token[], content: string, index: number): string | undefined {
  const size = tokens.slice(0, index).reduce((sum, token) => sum + token.size, 0);
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(new TextEncoder().encode(content).subarray(0, size));
  } catch {
    return undefined;
  }
}

interface Props {
  tokens: Token[];
  content: string;
  // Continues the answer from an alternative. None: the answer still runs.
  branch?: (beginning: string, tokens: Token[]) => void;
}

export const TokenView = memo(function TokenView({ tokens, content, branch }: Props) {
  const [chosen, choose] = useState<number | null>(null);
  const select = (event: Event) => {
    const index = (event.target as HTMLElement).dataset?.index;
    if (index !== undefined) {
      choose(Number(index));
    }
  };
  const move = (event: KeyboardEvent) => {
    const step = { ArrowLeft: -1, ArrowRight: 1, Home: -tokens.length, End: tokens.length }[event.key];
    if (step !== undefined) {
      event.preventDefault();
      const next = Math.min(tokens.length - 1, Math.max(0, (chosen ?? (step > 0 ? -1 : 1)) + step));
      choose(next);
      (event.currentTarget as HTMLElement).children[next]?.scrollIntoView({ block: 'nearest' });
    }
  };
  return (
    <div class="tokens">
      <p class="hint">
        Green: likely; red: surprising. Choose a token by click or arrow keys to see its alternatives.
      </p>
      <div class="stream" role="group" aria-label="Tokens" tabIndex={0} onClick={select} onKeyDown={move}>
        {tokens.map((token, i) => (
          <span
            key={i}
            data-index={i}
            class={`token ${i === chosen ? 'chosen' : ''}`}
            style={{ backgroundColor: colorOf(token.logprob) }}
            title={percent(token.logprob)}
          >
            {token.text}
          </span>
        ))}
      </div>
      {chosen !== null && tokens[chosen] && (
        <Alternatives tokens={tokens} content={content} index={chosen} branch={branch} />
      )}
    </div>
  );
});

function colorOf(logprob: number): string {
  return `hsl(${Math.round(Math.exp(logprob) * 120)} 75% 50% / 0.35)`;
}

function Alternatives({ tokens, content, index, branch }: Props & { index: number }) {
  const token = tokens[index];
  const before = textBefore(tokens, content, index);
  const continueWith = (text: string, logprob: number) => {
    const size = new TextEncoder().encode(text).length;
    branch!(before! + text, [...tokens.slice(0, index), { text, size, logprob, top: token.top }]);
  };
  return (
    <div class="alternatives" role="status">
      <p>
        Token {index + 1} of {tokens.length}: <code>{visible(token.text)}</code> {percent(token.logprob)}
      </p>
      <ul>
        {token.top.map(([text, logprob], i) => (
          <li key={i}>
            <button
              type="button"
              disabled={!branch || before === undefined || text === '' || text.includes('\uFFFD')}
              onClick={() => continueWith(text, logprob)}
              title="Continue the answer from this token"
            >
              <code>{visible(text)}</code>
              <meter min={0} max={1} value={Math.exp(logprob)} aria-hidden="true" />
              <span>{percent(logprob)}</span>
            </button>
          </li>
        ))}
      </ul>
    </div>
  );
}
