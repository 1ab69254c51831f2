// SPDX-License-Identifier: Apache-2.0
// A chat as a tree of turns. Every turn has one parent; `leaf` is the end of the branch that is
// shown. All functions return new chats and leave the old ones as they are.

// A token of an answer with its alternatives; natural logarithms.
export interface Token {
  text: string;
  size: number; // Bytes of UTF-8; a token may end within a character.
  logprob: number;
  top: [text: string, logprob: number][];
}

export interface Call {
  id: string;
  name: string;
  arguments: string;
  isCustom?: true; // Its arguments are a text for a custom tool.
}

export interface Attachment {
  name: string;
  text: string;
}

export interface Statistics {
  promptTokens: number;
  cachedTokens: number;
  answerTokens: number;
  reasoningTokens: number;
  acceptedTokens: number;
  draftedTokens: number;
  firstMs: number; // Until the first piece,
  totalMs: number; // and until the last.
  reasoningMs: number;
}

export type Status = 'running' | 'done' | 'stopped' | 'failed';

export interface Turn {
  id: string;
  parent: string | null;
  created: number;
  role: 'user' | 'assistant' | 'tool';
  content: string;
  files?: Attachment[];
  callId?: string; // A tool's result: of which call.
  // The rest is an assistant's.
  status?: Status;
  reasoning?: string;
  calls?: Call[];
  tokens?: Token[];
  model?: string;
  options?: Record<string, unknown>; // Members of the request beside its messages.
  prefix?: string; // The answer continues this text.
  prefixReasoning?: string;
  prefixTokens?: Token[];
  finish?: string;
  error?: string;
  statistics?: Statistics;
}

export interface Chat {
  id: string;
  title: string;
  created: number;
  updated: number;
  system: string;
  leaf: string | null;
  turns: Record<string, Turn>;
}

export function newId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(9));
  return btoa(String.fromCharCode(...bytes)).replaceAll('+', '-').replaceAll('/', '_');
}

export function newChat(system = '', now = Date.now()): Chat {
  return { id: newId(), title: '', created: now, updated: now, system, leaf: null, turns: {} };
}

// The turns from the first one to `leaf`.
export function pathTo(chat: Chat, leaf: string | null = chat.leaf): Turn[] {
  const path: Turn[] = [];
  const seen = new Set<string>();
  for (let id = leaf; id !== null && chat.turns[id] && !seen.has(id); id = chat.turns[id].parent) {
    seen.add(id);
    path.unshift(chat.turns[id]);
  }
  return path;
}

// Turns with this parent, in the order in which they came.
export function children(chat: Chat, parent: string | null): Turn[] {
  return Object.values(chat.turns)
    .filter((turn) => turn.parent === parent)
    .sort((left, right) => left.created - right.created || (left.id < right.id ? -1 : 1));
}

export function siblings(chat: Chat, id: string): Turn[] {
  return children(chat, chat.turns[id].parent);
}

// Adds a turn and shows it.
export function addTurn(chat: Chat, turn: Turn): Chat {
  const title = chat.title || (turn.role === 'user' ? titleOf(turn.content) : '');
  return {
    ...chat,
    title,
    updated: Math.max(turn.created, chat.updated),
    leaf: turn.id,
    turns: { ...chat.turns, [turn.id]: turn },
  };
}

export function changeTurn(chat: Chat, id: string, change: Partial<Turn>): Chat {
  const turn = chat.turns[id];
  return turn ? { ...chat, turns: { ...chat.turns, [id]: { ...turn, ...change } } } : chat;
}

// The newest end below a turn.
export function newestLeaf(chat: Chat, id: string): string {
  const below = children(chat, id);
  return below.length === 0 ? id : newestLeaf(chat, below[below.length - 1].id);
}

// Shows the branch of another turn with the same parent.
export function showSibling(chat: Chat, id: string, step: -1 | 1): Chat {
  const all = siblings(chat, id);
  const next = all[all.findIndex((turn) => turn.id === id) + step];
  return next ? { ...chat, leaf: newestLeaf(chat, next.id) } : chat;
}

// Without a turn and all below it.
export function removeTurn(chat: Chat, id: string): Chat {
  const turns = { ...chat.turns };
  const parent = turns[id]?.parent ?? null;
  const remove = (one: string) => {
    children(chat, one).forEach((turn) => remove(turn.id));
    delete turns[one];
  };
  remove(id);
  const rest = { ...chat, turns };
  if (chat.leaf !== null && turns[chat.leaf]) {
    return rest;
  }
  const left = children(rest, parent);
  const shown = left.length > 0 ? newestLeaf(rest, left[left.length - 1].id) : parent;
  return { ...rest, leaf: shown };
}

// A chat of its own with the turns up to one.
export function copyUpTo(chat: Chat, id: string, now = Date.now()): Chat {
  const turns = Object.fromEntries(pathTo(chat, id).map((turn) => [turn.id, turn]));
  return { ...chat, id: newId(), title: `${chat.title} (copy)`, created: now, updated: now, leaf: id, turns };
}

export function titleOf(text: string): string {
  const line = text.trim().split('\n', 1)[0];
  return line.length > 60 ? `${line.slice(0, 57)}...` : line;
}

// Chats that have the text in their title, system prompt or turns.
export function search(chats: Chat[], text: string): Chat[] {
  const wanted = text.trim().toLowerCase();
  const has = (one: string | undefined) => (one ?? '').toLowerCase().includes(wanted);
  return wanted === ''
    ? chats
    : chats.filter(
        (chat) => has(chat.title) || has(chat.system) || Object.values(chat.turns).some((turn) => has(turn.content)),
      );
}
