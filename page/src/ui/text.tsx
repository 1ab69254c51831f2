// SPDX-License-Identifier: Apache-2.0
import { memo } from './memo';
import { useLayoutEffect, useMemo, useRef } from 'preact/hooks';
import { decorate, markdownHtml } from './markdown';

// A text in Markdown.
export const Markdown = memo(function Markdown({ text }: { text: string }) {
  const root = useRef<HTMLDivElement>(null);
  const html = useMemo(() => markdownHtml(text), [text]);
  useLayoutEffect(() => {
    root.current!.innerHTML = html;
    decorate(root.current!).catch(() => {
      // Without these parts formulas and code stay as they were written.
    });
  }, [html]);
  return <div class="markdown" ref={root} onClick={copyCode} />;
});

function copyCode(event: Event): void {
  const button = (event.target as Element).closest<HTMLButtonElement>('button.copy');
  const code = button?.closest('.code')?.querySelector('code')?.textContent;
  if (button && code !== undefined && code !== null) {
    void copyText(code).then(() => {
      button.textContent = 'Copied';
      setTimeout(() => (button.textContent = 'Copy'), 1500);
    });
  }
}

// Pages without a secure origin have no clipboard but the old command.
export async function copyText(text: string): Promise<void> {
  if (navigator.clipboard) {
    return navigator.clipboard.writeText(text);
  }
  const area = document.createElement('textarea');
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand('copy');
  area.remove();
}
