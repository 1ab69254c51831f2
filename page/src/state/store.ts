// SPDX-License-Identifier: Apache-2.0
// The page's state: one immutable value, and who wants to know of its changes.
import { useEffect, useState } from 'preact/hooks';
import { loadSetting } from './database';
import type { Model } from '../api/client';
import type { Chat } from '../model/tree';
import { defaults, type Preset, type Settings } from '../model/settings';

export type Panel =
  | { kind: 'settings' | 'server' | 'keys' }
  | { kind: 'inspector' | 'compare'; turn: string }
  | null;

export interface State {
  chats: Chat[]; // The newest first.
  current: string | null;
  draft: Chat; // The chat that its first message adds to the others.
  models: Model[];
  settings: Settings;
  presets: Preset[];
  theme: '' | 'light' | 'dark';
  problem: string; // A line for the user; empty: none.
  panel: Panel;
  isSidebarOpen: boolean;
}

type Listener = () => void;

class Store {
  private listeners = new Set<Listener>();

  constructor(private state: State) {}

  get(): State {
    return this.state;
  }

  set(change: Partial<State>): void {
    this.state = { ...this.state, ...change };
    this.listeners.forEach((listener) => listener());
  }

  subscribe(listener: Listener): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }
}

function emptyChat(): Chat {
  return { id: 'draft', title: '', created: 0, updated: 0, system: loadSetting('system', ''), leaf: null, turns: {} };
}

export const store = new Store({
  chats: [],
  current: null,
  draft: emptyChat(),
  models: [],
  settings: { ...defaults, ...loadSetting<Partial<Settings>>('settings', {}) },
  presets: loadSetting<Preset[]>('presets', []),
  theme: loadSetting<State['theme']>('theme', ''),
  problem: '',
  panel: null,
  isSidebarOpen: false,
});

// The state; the component is drawn again when it changes.
export function useStore(): State {
  const [state, setState] = useState(store.get());
  useEffect(() => {
    setState(store.get());
    return store.subscribe(() => setState(store.get()));
  }, []);
  return state;
}

export function currentChat(state: State = store.get()): Chat {
  return state.chats.find((chat) => chat.id === state.current) ?? state.draft;
}

export function report(error: unknown): void {
  store.set({ problem: error instanceof Error ? error.message : String(error) });
}
