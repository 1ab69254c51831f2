// SPDX-License-Identifier: Apache-2.0
// Chats in the browser's IndexedDB, one record each; small settings in localStorage.
import { createStore, del, set, values } from 'idb-keyval';
import type { Chat } from '../model/tree';

const store = createStore('saker', 'chats');

export async function loadChats(): Promise<Chat[]> {
  const chats = await values<Chat>(store);
  return chats.sort((left, right) => right.updated - left.updated);
}

export async function saveChat(chat: Chat): Promise<void> {
  await set(chat.id, chat, store);
}

export async function deleteChat(id: string): Promise<void> {
  await del(id, store);
}

export function loadSetting<T>(name: string, fallback: T): T {
  try {
    const text = localStorage.getItem(`saker.${name}`);
    return text === null ? fallback : (JSON.parse(text) as T);
  } catch {
    return fallback;
  }
}

export function saveSetting(name: string, value: unknown): void {
  try {
    localStorage.setItem(`saker.${name}`, JSON.stringify(value));
  } catch {
    // A full or forbidden store: the setting lives as long as the page.
  }
}
