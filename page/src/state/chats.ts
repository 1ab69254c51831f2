// SPDX-License-Identifier: Apache-2.0
// Changes of chats, in the state and in the browser's database.
import { currentChat, report, store } from './store';
import { deleteChat, saveChat, saveSetting } from './database';
import { newChat, type Chat } from '../model/tree';

export function chatWithId(id: string): Chat | undefined {
  return store.get().chats.find((chat) => chat.id === id);
}

// Replaces a chat, or adds it in front. `saves`: writes it now.
export function putChat(chat: Chat, saves = true): void {
  const { chats } = store.get();
  const index = chats.findIndex((one) => one.id === chat.id);
  store.set({ chats: index < 0 ? [chat, ...chats] : chats.with(index, chat) });
  if (saves) {
    saveChat(chat).catch(report);
  }
}

// The current chat; a draft becomes one of the others.
export function startedChat(): Chat {
  const chat = currentChat();
  if (chat.id !== 'draft') {
    return chat;
  }
  const started = newChat(chat.system);
  putChat(started, false);
  showChat(started.id);
  return started;
}

export function showChat(id: string | null): void {
  store.set({ current: id, isSidebarOpen: false, problem: '' });
  history.replaceState(null, '', id === null ? '#' : `#${id}`);
}

export function removeChat(id: string): void {
  const { chats, current } = store.get();
  store.set({ chats: chats.filter((chat) => chat.id !== id) });
  if (current === id) {
    showChat(null);
  }
  deleteChat(id).catch(report);
}

export function setSystem(system: string): void {
  const chat = currentChat();
  if (chat.id === 'draft') {
    store.set({ draft: { ...chat, system } });
    saveSetting('system', system);
  } else {
    putChat({ ...chat, system });
  }
}
