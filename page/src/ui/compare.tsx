// SPDX-License-Identifier: Apache-2.0
// An answer in the base and in an adapter: how probable each finds its tokens, and what the other
// one would have said.
import { useEffect, useRef, useState } from 'preact/hooks';
import { emptyAnswer, streamChat } from '../api/chat';
import { compareTokens, type TokenDifference } from '../api/scores';
import { currentChat, useStore } from '../state/store';
import { requestBody } from '../model/request';
import { Dialog } from './dialog';
import { Markdown } from './text';
import { percent, visible } from './tokens';

export function ComparePanel({ turn: id }: { turn: string }) {
  const { models } = useStore();
  const chat = currentChat();
  const turn = chat.turns[id];
  const others = models.filter((model) => model.id !== turn.model).map((model) => model.id);
  const [other, setOther] = useState(others[0] ?? '');
  const body = { ...requestBody(chat, turn), model: other };
  return (
    <Dialog title="Compare" wide>
      <label>
        Compare with
        <select value={other} onChange={(event) => setOther(event.currentTarget.value)}>
          {others.map((name) => (
            <option key={name} value={name}>{name}</option>
          ))}
        </select>
      </label>
      <div class="sides">
        <section aria-label={`Answer of ${turn.model}`}>
          <h3>{turn.model}</h3>
          <Markdown text={turn.content} />
        </section>
        <section aria-label={`Answer of ${other}`}>
          <h3>{other}, same prompt and seed</h3>
          <OtherAnswer key={other} body={body} />
        </section>
      </div>
      <h3>The tokens of the first answer</h3>
      <Differences key={`d${other}`} body={body} content={turn.content} models={[turn.model ?? '', other]} />
    </Dialog>
  );
}

function OtherAnswer({ body }: { body: Record<string, unknown> }) {
  const [text, setText] = useState('');
  const [problem, setProblem] = useState('');
  useEffect(() => {
    const controller = new AbortController();
    const answer = emptyAnswer();
    streamChat(body, answer, { changed: () => setText(answer.content) }, controller.signal).catch((error: Error) => {
      if (!controller.signal.aborted) {
        setProblem(error.message);
      }
    });
    return () => controller.abort();
  }, []);
  return problem ? <p class="problem" role="alert">{problem}</p> : <Markdown text={text} />;
}

interface DifferenceProps {
  body: Record<string, unknown>;
  content: string;
  models: [string, string];
}

function Differences({ body, content, models }: DifferenceProps) {
  const all = useStore().models;
  const [tokens, setTokens] = useState<TokenDifference[]>([]);
  const [problem, setProblem] = useState('');
  const [chosen, choose] = useState<number | null>(null);
  const isOpen = useRef(true);
  useEffect(() => {
    // A model without a parent is the base.
    const [first, second] = models.map((name) => (all.find((model) => model.id === name)?.parent ? name : 'base'));
    compareTokens(body, content, [first, second]).then(
      (found) => isOpen.current && setTokens(found),
      (error: Error) => isOpen.current && setProblem(error.message),
    );
    return () => void (isOpen.current = false);
  }, []);
  if (problem) {
    return <p class="problem" role="alert">{problem}</p>;
  }
  const sum = tokens.reduce((total, token) => total + token.other - token.base, 0);
  return (
    <div class="tokens">
      <p class="hint">
        Blue: {models[1]} finds the token more probable; red: less. Sum of differences: {sum.toFixed(2)}.
      </p>
      <div class="stream">
        {tokens.map((token, i) => (
          <span
            key={i}
            class={`token ${i === chosen ? 'chosen' : ''}`}
            style={{ backgroundColor: colorOf(token.other - token.base) }}
            title={`${percent(token.base)} → ${percent(token.other)}`}
            onClick={() => choose(i)}
          >
            {token.text}
          </span>
        ))}
      </div>
      {chosen !== null && tokens[chosen] && (
        <p role="status">
          <code>{visible(tokens[chosen].text)}</code>: {percent(tokens[chosen].base)} in {models[0]}, {percent(tokens[chosen].other)} in {models[1]}
        </p>
      )}
      <details>
        <summary>The largest differences</summary>
        <table>
          <tbody>
            {largest(tokens).map((token, i) => (
              <tr key={i}>
                <td><code>{visible(token.text)}</code></td>
                <td>{percent(token.base)}</td>
                <td>{percent(token.other)}</td>
                <td>{(token.other - token.base).toFixed(3)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </details>
    </div>
  );
}

function largest(tokens: TokenDifference[]): TokenDifference[] {
  const size = (token: TokenDifference) => Math.abs(token.other - token.base);
  return [...tokens].sort((left, right) => size(right) - size(left)).slice(0, 10);
}

// Full colour at a factor of e.
function colorOf(difference: number): string {
  const strength = Math.min(1, Math.abs(difference)) * 0.55;
  return `hsl(${difference > 0 ? 215 : 0} 80% 50% / ${strength.toFixed(2)})`;
}
