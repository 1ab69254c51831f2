// SPDX-License-Identifier: Apache-2.0
// Where the user writes, and attaches files.
import { useRef, useState } from 'preact/hooks';
import { say, stopAll } from '../state/answers';
import { currentChat, report } from '../state/store';
import { readFile } from '../model/attachments';
import type { Attachment } from '../model/tree';

export function Composer({ isBusy }: { isBusy: boolean }) {
  const [text, setText] = useState('');
  const [files, setFiles] = useState<Attachment[]>([]);
  const chooser = useRef<HTMLInputElement>(null);
  const send = (event: Event) => {
    event.preventDefault();
    if (isBusy || (text.trim() === '' && files.length === 0)) {
      return;
    }
    say(text, files);
    setText('');
    setFiles([]);
  };
  const attach = (list: Iterable<File>) =>
    Promise.all([...list].map(readFile)).then((read) => setFiles((old) => [...old, ...read]), report);
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) {
      send(event);
    }
  };
  return (
    <form
      class="composer"
      onSubmit={send}
      onDragOver={(event) => event.preventDefault()}
      onDrop={(event) => {
        event.preventDefault();
        void attach(event.dataTransfer?.files ?? []);
      }}
    >
      {files.length > 0 && (
        <ul class="files" aria-label="Attached files">
          {files.map((file, i) => (
            <li key={i}>
              {file.name}
              <button type="button" class="icon" aria-label={`Remove ${file.name}`} onClick={() => setFiles(files.filter((_, k) => k !== i))}>
                ✕
              </button>
            </li>
          ))}
        </ul>
      )}
      <textarea
        id="input"
        aria-label="Message"
        placeholder="Message (Enter sends, Shift+Enter starts a line)"
        rows={Math.min(10, Math.max(2, text.split('\n').length))}
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={onKeyDown}
        onPaste={(event) => {
          const pasted = [...(event.clipboardData?.files ?? [])];
          if (pasted.length > 0) {
            event.preventDefault();
            void attach(pasted);
          }
        }}
      />
      <input
        type="file"
        multiple
        hidden
        ref={chooser}
        onChange={(event) => {
          const input = event.currentTarget;
          void attach([...(input.files ?? [])]).then(() => (input.value = ''));
        }}
      />
      <div class="row">
        <button type="button" onClick={() => chooser.current!.click()}>Attach</button>
        <span class="space" />
        {isBusy ? (
          <button type="button" class="main" onClick={() => stopAll(currentChat())}>Stop</button>
        ) : (
          <button type="submit" class="main">Send</button>
        )}
      </div>
    </form>
  );
}
