// SPDX-License-Identifier: Apache-2.0
import { render } from 'preact';
import { resume } from './state/answers';
import { loadChats } from './state/database';
import { loadModels } from './state/server';
import { report, store } from './state/store';
import { App } from './ui/app';
import './style.css';

async function start(): Promise<void> {
  render(<App />, document.getElementById('app')!);
  const [chats] = await Promise.all([
    loadChats().catch((error) => {
      report(error);
      return [];
    }),
    loadModels(),
  ]);
  const begun = store.get().chats; // What the user said meanwhile.
  const all = [...begun, ...chats.filter(({ id }) => !begun.some((chat) => chat.id === id))];
  const wanted = location.hash.slice(1);
  store.set({ chats: all, current: all.some((chat) => chat.id === wanted) ? wanted : null });
  resume();
}

void start();
