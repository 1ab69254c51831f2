// SPDX-License-Identifier: Apache-2.0
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import { isRunning, modelName } from '../state/answers';
import { currentChat, store, useStore, type State } from '../state/store';
import { saveSetting } from '../state/database';
import { changeSettings } from '../state/server';
import { pathTo, siblings, type Chat } from '../model/tree';
import { Composer } from './composer';
import { Message } from './message';
import { Panels } from './panels';
import { onKey } from './shortcuts';
import { Sidebar } from './sidebar';

export function App() {
  const state = useStore();
  const chat = currentChat(state);
  useTheme(state.theme);
  useEffect(() => {
    document.addEventListener('keydown', onKey);
    return () => document.removeEventListener('keydown', onKey);
  }, []);
  return (
    <>
      <a class="skip" href="#input" onClick={(event) => (event.preventDefault(), document.getElementById('input')?.focus())}>
        To the message
      </a>
      <Sidebar />
      {state.isSidebarOpen && <div class="shade" onClick={() => store.set({ isSidebarOpen: false })} />}
      <main>
        <Bar state={state} chat={chat} />
        <Log chat={chat} state={state} />
        {state.problem && (
          <p class="problem" role="alert">
            {state.problem}
            <button type="button" class="icon" aria-label="Dismiss" onClick={() => store.set({ problem: '' })}>✕</button>
          </p>
        )}
        <Composer isBusy={isRunning(chat)} key={chat.id} />
      </main>
      <Panels panel={state.panel} />
    </>
  );
}

function useTheme(theme: State['theme']): void {
  useLayoutEffect(() => {
    document.documentElement.dataset.theme = theme;
    saveSetting('theme', theme);
  }, [theme]);
}

const nextTheme = { '': 'light', light: 'dark', dark: '' } as const;
const themeNames = { '': 'System', light: 'Light', dark: 'Dark' };

function Bar({ state, chat }: { state: State; chat: Chat }) {
  return (
    <header class="bar">
      <button
        type="button"
        class="icon menu-button"
        aria-label="Chats"
        aria-expanded={state.isSidebarOpen}
        aria-controls="chats"
        onClick={() => store.set({ isSidebarOpen: !state.isSidebarOpen })}
      >
        ☰
      </button>
      <select aria-label="Model" value={modelName()} onChange={(event) => changeSettings({ model: event.currentTarget.value })}>
        {state.models.map((model) => (
          <option key={model.id} value={model.id}>
            {model.id}
            {model.parent ? ' (adapter)' : ''}
          </option>
        ))}
      </select>
      <h1>{chat.title || 'New chat'}</h1>
      <button type="button" onClick={() => store.set({ panel: { kind: 'settings' } })}>Settings</button>
      <button type="button" onClick={() => store.set({ panel: { kind: 'server' } })}>Server</button>
      <button type="button" aria-label={`Colours: ${themeNames[state.theme]}`} onClick={() => store.set({ theme: nextTheme[state.theme] })}>
        ◐
      </button>
    </header>
  );
}

function Log({ chat, state }: { chat: Chat; state: State }) {
  const log = useRef<HTMLDivElement>(null);
  const follows = useRef(true);
  const path = pathTo(chat);
  useLayoutEffect(() => {
    if (follows.current) {
      log.current!.scrollTop = log.current!.scrollHeight;
    }
  });
  useEffect(() => {
    follows.current = true;
  }, [chat.id, path.length]);
  const onScroll = () => {
    const { scrollTop, scrollHeight, clientHeight } = log.current!;
    follows.current = scrollHeight - scrollTop - clientHeight < 40;
  };
  const canCompare = state.models.length > 1;
  return (
    <div class="log" role="log" aria-label="Chat" ref={log} onScroll={onScroll} tabIndex={0}>
      {path.length === 0 && <Welcome state={state} />}
      {path.map((turn, i) => {
        const all = siblings(chat, turn.id);
        return (
          <Message
            key={turn.id}
            turn={turn}
            place={all.findIndex((one) => one.id === turn.id)}
            count={all.length}
            isLast={i === path.length - 1}
            canCompare={canCompare}
          />
        );
      })}
    </div>
  );
}

function Welcome({ state }: { state: State }) {
  const model = state.models.find((one) => one.id === modelName());
  return (
    <section class="welcome">
      <h2>Saker</h2>
      {model && (
        <p>
          {model.id}
          {model.context_length ? `, a context of ${model.context_length} tokens` : ''}
        </p>
      )}
      <p class="hint">Chats stay in this browser.</p>
    </section>
  );
}
