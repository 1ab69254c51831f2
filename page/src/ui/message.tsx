// SPDX-License-Identifier: Apache-2.0
// One turn of a chat with what can be done to it.
import { memo } from './memo';
import { useState } from 'preact/hooks';
import { answer, answerNow, giveResults, say, stop } from '../state/answers';
import { currentChat, store } from '../state/store';
import { putChat, showChat } from '../state/chats';
import { copyUpTo, removeTurn, showSibling, type Statistics, type Token, type Turn } from '../model/tree';
import { copyText, Markdown } from './text';
import { TokenView } from './tokens';

interface Props {
  turn: Turn;
  place: number; // Among the turns with the same parent,
  count: number; // of which there are so many.
  isLast: boolean;
  canCompare: boolean;
}

const names = { user: 'You', assistant: 'Answer', tool: 'Tool result' };

export const Message = memo(
  function Message({ turn, place, count, isLast, canCompare }: Props) {
    const [isEdited, setEdited] = useState(false);
    const [showsTokens, showTokens] = useState(false);
    const isRunning = turn.status === 'running';
    const hasTokens = (turn.tokens?.length ?? 0) > 0;
    return (
      <article class={`turn ${turn.role}`} aria-label={names[turn.role]} aria-busy={isRunning} data-turn={turn.id}>
        <header>
          <strong>{turn.role === 'assistant' ? turn.model || 'Answer' : names[turn.role]}</strong>
          {count > 1 && <Branches turn={turn} place={place} count={count} />}
        </header>
        {isEdited ? (
          <Editor turn={turn} close={() => setEdited(false)} />
        ) : (
          <>
            <Files turn={turn} />
            {turn.reasoning && <Reasoning turn={turn} />}
            {showsTokens && hasTokens ? (
              <TokenView tokens={turn.tokens!} content={turn.content} branch={isRunning ? undefined : branchOf(turn)} />
            ) : turn.role === 'assistant' ? (
              <Markdown text={turn.content} />
            ) : (
              <div class="plain">{turn.content}</div>
            )}
            {turn.calls && turn.calls.length > 0 && <Calls turn={turn} canAnswer={isLast && !isRunning} />}
          </>
        )}
        {isRunning && <p class="wait">{turn.content === '' && !turn.reasoning ? 'Reading the prompt…' : 'Writing…'}</p>}
        {turn.error && <p class="problem" role="alert">{turn.error}</p>}
        {turn.finish === 'length' && <p class="hint">The answer reached its limit of tokens.</p>}
        {turn.status === 'stopped' && <p class="hint">Stopped.</p>}
        {!isEdited && (
          <Actions turn={turn} edit={() => setEdited(true)} canCompare={canCompare}>
            {hasTokens && (
              <button type="button" aria-pressed={showsTokens} onClick={() => showTokens(!showsTokens)}>
                Tokens
              </button>
            )}
          </Actions>
        )}
        {turn.statistics && !isRunning && <Numbers statistics={turn.statistics} />}
      </article>
    );
  },
);

function Branches({ turn, place, count }: { turn: Turn; place: number; count: number }) {
  const show = (step: -1 | 1) => putChat(showSibling(currentChat(), turn.id, step));
  return (
    <span class="branches">
      <button type="button" class="icon" aria-label="Previous version" disabled={place === 0} onClick={() => show(-1)}>
        ‹
      </button>
      <span>
        {place + 1} / {count}
      </span>
      <button type="button" class="icon" aria-label="Next version" disabled={place === count - 1} onClick={() => show(1)}>
        ›
      </button>
    </span>
  );
}

function Files({ turn }: { turn: Turn }) {
  return (
    <>
      {turn.files?.map((file) => (
        <details class="file" key={file.name}>
          <summary>
            {file.name} ({file.text.length} characters)
          </summary>
          <pre>{file.text.slice(0, 20_000)}</pre>
        </details>
      ))}
    </>
  );
}

function Reasoning({ turn }: { turn: Turn }) {
  const isThinking = turn.status === 'running' && turn.content === '';
  const seconds = ((turn.statistics?.reasoningMs ?? 0) / 1000).toFixed(1);
  return (
    <div class="reasoning">
      <details>
        <summary>{isThinking ? 'Thinking…' : `Thoughts (${seconds} s)`}</summary>
        <div class="plain">{turn.reasoning}</div>
      </details>
      {isThinking && (
        <button type="button" onClick={() => answerNow(currentChat(), turn)}>
          Answer now
        </button>
      )}
    </div>
  );
}

function Calls({ turn, canAnswer }: { turn: Turn; canAnswer: boolean }) {
  const [results, setResults] = useState<string[]>([]);
  const set = (i: number, text: string) => setResults((old) => turn.calls!.map((_, k) => (k === i ? text : (old[k] ?? ''))));
  const submit = (event: Event) => {
    event.preventDefault();
    giveResults(currentChat(), turn, turn.calls!.map((_, i) => results[i] ?? ''));
  };
  return (
    <form class="calls" onSubmit={submit}>
      {turn.calls!.map((call, i) => (
        <section class="call" key={call.id} aria-label={`Call of ${call.name}`}>
          <strong>{call.name}</strong>
          <pre tabIndex={0}>{call.isCustom ? call.arguments : pretty(call.arguments)}</pre>
          {canAnswer && (
            <label>
              Result
              <textarea rows={2} value={results[i] ?? ''} onInput={(event) => set(i, event.currentTarget.value)} />
            </label>
          )}
        </section>
      ))}
      {canAnswer && <button type="submit">Send results</button>}
    </form>
  );
}

function pretty(json: string): string {
  try {
    return JSON.stringify(JSON.parse(json), null, 2);
  } catch {
    return json;
  }
}

function Editor({ turn, close }: { turn: Turn; close: () => void }) {
  const [text, setText] = useState(turn.content);
  const isUser = turn.role === 'user';
  const send = (event: Event) => {
    event.preventDefault();
    close();
    if (isUser) {
      return say(text, turn.files ?? [], turn.parent);
    }
    answer(currentChat(), turn.parent!, { content: text, reasoning: turn.reasoning });
  };
  return (
    <form class="editor" onSubmit={send}>
      <textarea
        rows={Math.min(16, text.split('\n').length + 1)}
        value={text}
        aria-label="Text"
        ref={(area) => area?.focus()}
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={(event) => event.key === 'Escape' && close()}
      />
      <div class="row">
        <button type="submit" class="main">{isUser ? 'Send' : 'Continue from this text'}</button>
        <button type="button" onClick={close}>Cancel</button>
      </div>
    </form>
  );
}

interface ActionProps {
  turn: Turn;
  edit: () => void;
  canCompare: boolean;
  children: preact.ComponentChildren;
}

function Actions({ turn, edit, canCompare, children }: ActionProps) {
  const isAnswer = turn.role === 'assistant';
  if (turn.status === 'running') {
    return (
      <footer class="actions">
        <button type="button" onClick={() => stop(turn.id)}>Stop</button>
        {children}
      </footer>
    );
  }
  const again = () => answer(currentChat(), turn.parent!);
  const goOn = () => answer(currentChat(), turn.parent!, { content: turn.content, reasoning: turn.reasoning, tokens: turn.tokens });
  const replay = () => answer(currentChat(), turn.parent!, undefined, turn.options);
  const split = () => {
    const copy = copyUpTo(currentChat(), turn.id);
    putChat(copy);
    showChat(copy.id);
  };
  const remove = () => confirm('Delete this and all that follows?') && putChat(removeTurn(currentChat(), turn.id));
  return (
    <footer class="actions">
      <button type="button" onClick={() => void copyText(turn.content)}>Copy</button>
      <button type="button" onClick={edit}>Edit</button>
      {isAnswer && <button type="button" onClick={again}>Regenerate</button>}
      {children}
      <details class="more" onClick={closeMenu}>
        <summary>More</summary>
        <div class="menu">
          {isAnswer && <button type="button" onClick={goOn}>Continue</button>}
          {isAnswer && <button type="button" onClick={replay} title="The same seed and settings give the same answer">Replay</button>}
          {isAnswer && <button type="button" onClick={() => store.set({ panel: { kind: 'inspector', turn: turn.id } })}>Inspect</button>}
          {isAnswer && canCompare && (
            <button type="button" onClick={() => store.set({ panel: { kind: 'compare', turn: turn.id } })}>Compare</button>
          )}
          <button type="button" onClick={split}>Copy chat up to here</button>
          <button type="button" onClick={remove}>Delete</button>
        </div>
      </details>
    </footer>
  );
}

// A chosen entry closes its menu.
function closeMenu(event: Event): void {
  if ((event.target as Element).tagName === 'BUTTON') {
    (event.currentTarget as HTMLDetailsElement).open = false;
  }
}

function branchOf(turn: Turn): (beginning: string, tokens: Token[]) => void {
  return (content, tokens) => answer(currentChat(), turn.parent!, { content, reasoning: turn.reasoning, tokens });
}

function Numbers({ statistics: s }: { statistics: Statistics }) {
  const seconds = (s.totalMs - s.firstMs) / 1000;
  const rate = seconds > 0 && s.answerTokens > 1 ? `${((s.answerTokens - 1) / seconds).toFixed(1)} tokens/s` : '';
  const parts = [
    `prompt ${s.promptTokens} tokens (${s.cachedTokens} cached)`,
    `answer ${s.answerTokens} tokens${s.reasoningTokens > 0 ? ` (${s.reasoningTokens} of reasoning)` : ''}`,
    `first after ${(s.firstMs / 1000).toFixed(2)} s`,
    rate,
    s.draftedTokens > 0 ? `${Math.round((100 * s.acceptedTokens) / s.draftedTokens)} % of drafts taken` : '',
  ];
  return <p class="numbers">{s.promptTokens > 0 ? parts.filter(Boolean).join(' · ') : parts[2]}</p>;
}
