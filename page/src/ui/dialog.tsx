// SPDX-License-Identifier: Apache-2.0
import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { store } from '../state/store';

export function closePanel(): void {
  store.set({ panel: null });
}

// A dialog hears of its end in a task of its own. One that is gone by then has no say about the next panel.
function onClose(event: Event): void {
  if ((event.currentTarget as Node).isConnected) {
    closePanel();
  }
}

// A panel over the page. The browser keeps the focus inside; Escape closes it.
export function Dialog({ title, children, wide }: { title: string; children: ComponentChildren; wide?: boolean }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current!.showModal(), []);
  return (
    <dialog ref={dialog} class={wide ? 'wide' : ''} aria-label={title} onClose={onClose}>
      <header>
        <h2>{title}</h2>
        <button type="button" class="icon" aria-label="Close" onClick={closePanel}>
          ✕
        </button>
      </header>
      <div class="body">{children}</div>
    </dialog>
  );
}
