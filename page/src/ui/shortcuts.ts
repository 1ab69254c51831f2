// SPDX-License-Identifier: Apache-2.0
import { stopAll } from '../state/answers';
import { showChat } from '../state/chats';
import { currentChat, store } from '../state/store';

// Ctrl (or Command) and K: a new chat; and a comma: settings. Escape stops an answer.
export function onKey(event: KeyboardEvent): void {
  const isCommand = event.ctrlKey || event.metaKey;
  if (isCommand && event.key === 'k') {
    event.preventDefault();
    store.set({ panel: null });
    showChat(null);
    // Behind the drawing, which is a microtask, too, and before the next key.
    queueMicrotask(() => document.getElementById('input')?.focus());
  } else if (isCommand && event.key === ',') {
    event.preventDefault();
    store.set({ panel: { kind: 'settings' } });
  } else if (event.key === 'Escape' && store.get().panel === null) {
    store.set({ isSidebarOpen: false });
    stopAll(currentChat());
  }
}
