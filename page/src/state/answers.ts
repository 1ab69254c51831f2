// SPDX-License-Identifier: Apache-2.0
// Answers that are asked for, run, and continue after a reload.
import { emptyAnswer, streamChat, type Answer } from '../api/chat';
import { ServerError } from '../api/client';
import { saveChat } from './database';
import { chatWithId, putChat, startedChat } from './chats';
import { report, store } from './store';
import { addTurn, changeTurn, newId, type Attachment, type Chat, type Token, type Turn } from '../model/tree';
import { requestBody } from '../model/request';
import { requestOptions } from '../model/settings';

// One request as it went over the wire, for the inspector.
export interface Recording {
  body: Record<string, unknown>;
  events: string[];
}

const running = new Map<string, AbortController>();
const recordings = new Map<string, Recording>();
const kSaveMs = 500;

export function recordingOf(turn: string): Recording | undefined {
  return recordings.get(turn);
}

export function isRunning(chat: Chat): boolean {
  return Object.keys(chat.turns).some((id) => running.has(id));
}

export function stop(turn: string): void {
  running.get(turn)?.abort();
}

export function stopAll(chat: Chat): void {
  Object.keys(chat.turns).forEach(stop);
}

export function modelName(): string {
  const { models, settings } = store.get();
  return models.some((model) => model.id === settings.model) ? settings.model : (models[0]?.id ?? '');
}

// Adds the user's message behind the current leaf, or behind `parent`, and asks for an answer.
export function say(content: string, files: Attachment[], parent?: string | null): void {
  const chat = startedChat();
  const turn: Turn = { id: newId(), parent: parent === undefined ? chat.leaf : parent, created: Date.now(), role: 'user', content };
  if (files.length > 0) {
    turn.files = files;
  }
  answer(addTurn(chat, turn), turn.id);
}

// Adds results of tools behind the turn that called them, and asks for an answer.
export function giveResults(chat: Chat, caller: Turn, results: string[]): void {
  let changed = chat;
  let parent = caller.id;
  results.forEach((content, i) => {
    const turn: Turn = { id: newId(), parent, created: Date.now() + i, role: 'tool', content, callId: caller.calls?.[i]?.id };
    changed = addTurn(changed, turn);
    parent = turn.id;
  });
  answer(changed, parent);
}

interface Beginning {
  content: string;
  reasoning?: string;
  tokens?: Token[];
}

// Asks for an answer to the turn `parent`, which may continue a beginning.
export function answer(chat: Chat, parent: string, beginning?: Beginning, changes: Record<string, unknown> = {}): void {
  const turn: Turn = {
    id: newId(), parent, created: Date.now(), role: 'assistant', content: beginning?.content ?? '', status: 'running',
  };
  try {
    turn.options = { ...requestOptions(store.get().settings, modelName()), ...changes };
  } catch (error) {
    putChat(chat);
    return report(error);
  }
  turn.model = String(turn.options.model);
  if (beginning) {
    turn.prefix = beginning.content;
    turn.prefixReasoning = beginning.reasoning;
    turn.prefixTokens = beginning.tokens;
  }
  store.set({ problem: '' });
  putChat(addTurn(chat, turn));
  void run(chat.id, turn.id);
}

// Closes the reasoning of a running answer: the same seed gives the same thoughts again, up to a
// budget of those that came so far. The answer that follows is a sibling.
export function answerNow(chat: Chat, turn: Turn): void {
  const thoughts = Math.max(1, turn.statistics?.answerTokens || Math.round((turn.reasoning ?? '').length / 4));
  stop(turn.id);
  const changed = changeTurn(chat, turn.id, { status: 'stopped' });
  answer(changed, turn.parent!, undefined, { ...turn.options, reasoning_budget_tokens: thoughts });
}

// Runs what a reload of the page cut off. Requests have seeds, so that the same answer comes again;
// what is there stays in sight until then.
export function resume(): void {
  for (const chat of store.get().chats) {
    for (const turn of Object.values(chat.turns)) {
      if (turn.status === 'running' && !running.has(turn.id)) {
        unlessElsewhere(turn.id, () => run(chat.id, turn.id));
      }
    }
  }
}

// Another tab may still be running it. Pages without a secure origin have no locks.
function unlessElsewhere(turn: string, work: () => Promise<void>): void {
  if (!navigator.locks) {
    void work();
    return;
  }
  void navigator.locks.request(`saker.${turn}`, { ifAvailable: true }, (lock) => (lock ? void work() : undefined));
}

async function run(chatId: string, turnId: string): Promise<void> {
  const controller = new AbortController();
  running.set(turnId, controller);
  const release = holdLock(turnId);
  const chat = chatWithId(chatId)!;
  const begun = chat.turns[turnId];
  const answer = emptyAnswer(begun.prefix, begun.prefixReasoning, begun.prefixTokens);
  const recording: Recording = { body: requestBody(chat, begun), events: [] };
  recordings.set(turnId, recording);
  const view = new LiveView(chatId, turnId, begun, answer);
  let end: Partial<Turn>;
  try {
    const listener = { changed: () => view.schedule(), event: (data: string) => void recording.events.push(data) };
    await streamChat(recording.body, answer, listener, controller.signal);
    end = { status: 'done', finish: answer.finish };
  } catch (error) {
    end = controller.signal.aborted ? { status: 'stopped' } : { status: 'failed', error: (error as Error).message };
    if (error instanceof ServerError && error.status === 401) {
      store.set({ panel: { kind: 'keys' } });
    }
  }
  running.delete(turnId);
  release();
  view.finish(end);
}

function holdLock(turn: string): () => void {
  let release = () => {};
  const held = new Promise<void>((resolve) => (release = resolve));
  void navigator.locks?.request(`saker.${turn}`, () => held);
  return release;
}

// Brings a growing answer into the state once a frame, and into the database now and then.
class LiveView {
  private isScheduled = false;
  private savedAt = performance.now();

  constructor(
    private chat: string,
    private turn: string,
    private begun: Turn,
    private answer: Answer,
  ) {}

  schedule(): void {
    if (!this.isScheduled) {
      this.isScheduled = true;
      setTimeout(() => this.show({}), 40);
    }
  }

  finish(end: Partial<Turn>): void {
    this.show(end, true);
  }

  private show(change: Partial<Turn>, isLast = false): void {
    this.isScheduled = false;
    const chat = chatWithId(this.chat);
    const turn = chat?.turns[this.turn];
    if (!chat || !turn || (!isLast && turn.status !== 'running')) {
      return;
    }
    const { content, reasoning, calls, tokens, statistics } = this.answer;
    const now: Partial<Turn> = {
      content: isLast && change.status === 'done' ? content : longer(this.begun.content, content),
      reasoning: isLast && change.status === 'done' ? reasoning : longer(this.begun.reasoning ?? '', reasoning),
      calls: calls.filter(Boolean).map((call) => ({ ...call })),
      tokens: [...tokens],
      statistics: { ...statistics },
      ...change,
    };
    const changed = changeTurn(chat, this.turn, now);
    putChat(changed, false);
    if (isLast || performance.now() - this.savedAt > kSaveMs) {
      this.savedAt = performance.now();
      saveChat(changed).catch(report);
    }
  }
}

// What was there before a reload, until the new text has caught up with it.
function longer(old: string, text: string): string {
  return old.length > text.length && old.startsWith(text) ? old : text;
}
