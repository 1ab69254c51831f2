// SPDX-License-Identifier: Apache-2.0
// The list of chats; their export and import.
import { useRef, useState } from 'preact/hooks';
import { currentChat, report, store, useStore } from '../state/store';
import { putChat, removeChat, showChat } from '../state/chats';
import { chatsFromJson, chatsToJson, chatToMarkdown } from '../model/files';
import { search, type Chat } from '../model/tree';

export function Sidebar() {
  const { chats, current, isSidebarOpen } = useStore();
  const [wanted, want] = useState('');
  const chooser = useRef<HTMLInputElement>(null);
  return (
    <nav id="chats" class={isSidebarOpen ? 'open' : ''} aria-label="Chats">
      <button type="button" class="main" onClick={() => showChat(null)}>New chat</button>
      <input type="search" placeholder="Search" aria-label="Search chats" value={wanted} onInput={(event) => want(event.currentTarget.value)} />
      <ul>
        {search(chats, wanted).map((chat) => (
          <li key={chat.id} class={chat.id === current ? 'current' : ''}>
            <button type="button" class="name" aria-current={chat.id === current} onClick={() => showChat(chat.id)}>
              {chat.title || 'Chat'}
            </button>
            <button
              type="button"
              class="icon"
              aria-label={`Delete ${chat.title || 'chat'}`}
              onClick={() => confirm('Delete this chat?') && removeChat(chat.id)}
            >
              ✕
            </button>
          </li>
        ))}
      </ul>
      <div class="row">
        <button type="button" disabled={chats.length === 0} onClick={() => download('chats.json', chatsToJson(store.get().chats))}>
          Export all
        </button>
        <button type="button" onClick={() => chooser.current!.click()}>Import</button>
      </div>
      <div class="row">
        <button type="button" disabled={current === null} onClick={() => download(`${fileName()}.json`, chatsToJson([currentChat()]))}>
          Export chat
        </button>
        <button type="button" disabled={current === null} onClick={() => download(`${fileName()}.md`, chatToMarkdown(currentChat()))}>
          Markdown
        </button>
      </div>
      <input
        type="file"
        id="import"
        accept="application/json,.json"
        hidden
        ref={chooser}
        onChange={(event) => {
          const input = event.currentTarget;
          void importFile(input.files?.[0]).then(() => (input.value = ''));
        }}
      />
    </nav>
  );
}

function fileName(): string {
  return currentChat().title.replace(/[^\p{L}\p{N}]+/gu, '-').replace(/^-|-$/g, '') || 'chat';
}

function download(name: string, text: string): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([text], { type: 'text/plain' }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

// Chats that are here already are replaced only by newer ones.
async function importFile(file: File | undefined): Promise<void> {
  try {
    const chats: Chat[] = file ? chatsFromJson(await file.text()) : [];
    for (const chat of chats) {
      const known = store.get().chats.find((one) => one.id === chat.id);
      if (!known || known.updated < chat.updated) {
        putChat(chat);
      }
    }
    if (chats.length > 0) {
      showChat(chats[0].id);
    }
  } catch (error) {
    report(error);
  }
}
