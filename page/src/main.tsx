// SPDX-License-Identifier: Apache-2.0
import { render } from 'preact';
import { models, ServerError, useKey } from './api/client';
import { resume } from './state/answers';
import { loadChats } from './state/database';
import { report, store } from './state/store';
import { App } from './ui/app';
import './style.css';

export async function loadModels(): Promise<void> {
  try {
    store.set({ models: await models() });
  } catch (error) {
    if (error instanceof ServerError && error.status === 401) {
      store.set({ panel: { kind: 'keys' } });
    } else {
      report(error);
    }
  }
}

async function start(): Promise<void> {
  useKey(store.get().settings.key);
  render(<App />, document.getElementById('app')!);
  const [chats] = await Promise.all([
    loadChats().catch((error) => {
      report(error);
      return [];
    }),
    loadModels(),
  ]);
  const wanted = location.hash.slice(1);
  store.set({ isReady: true, chats, current: chats.some((chat) => chat.id === wanted) ? wanted : null });
  resume();
}

void start();
