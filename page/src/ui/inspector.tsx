// SPDX-License-Identifier: Apache-2.0
// A request's body, the events that answered it, and the request as a line for a shell.
import { recordingOf } from '../state/answers';
import { currentChat, store } from '../state/store';
import { curlLine, requestBody } from '../model/request';
import { Dialog } from './dialog';
import { copyText } from './text';

const kMostEvents = 500;

export function InspectorPanel({ turn }: { turn: string }) {
  const chat = currentChat();
  const recording = recordingOf(turn);
  const body = recording?.body ?? requestBody(chat, chat.turns[turn]);
  const curl = curlLine(location.origin, body, store.get().settings.key !== '');
  const events = recording?.events ?? [];
  return (
    <Dialog title="Request" wide>
      <Part name="curl" text={curl} />
      <Part name="Body" text={JSON.stringify(body, null, 2)} />
      <Part
        name={`Events (${events.length})`}
        text={events.slice(0, kMostEvents).join('\n') || 'They are kept until the page is loaded again.'}
      />
      {events.length > kMostEvents && <p class="hint">The first {kMostEvents} events.</p>}
    </Dialog>
  );
}

function Part({ name, text }: { name: string; text: string }) {
  return (
    <section>
      <div class="row">
        <h3 class="space">{name}</h3>
        <button type="button" onClick={() => void copyText(text)}>Copy</button>
      </div>
      <pre tabIndex={0} aria-label={name}>{text}</pre>
    </section>
  );
}
