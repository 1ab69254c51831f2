// SPDX-License-Identifier: Apache-2.0
// Parts of the page that come when they are needed, once.
function part<T>(name: string): () => Promise<T> {
  const path = `/page/${name}.js`;
  let loaded: Promise<T> | undefined;
  return () => (loaded ??= import(path) as Promise<T>);
}

export const loadHighlight = part<{ highlight(code: string, language: string): string | undefined }>('highlight');
export const loadKatex = part<{ default: { renderToString(text: string, options: object): string } }>('katex');
export const loadPdf = part<{ pdfText(data: Uint8Array): Promise<string> }>('pdf');
