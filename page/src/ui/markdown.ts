// SPDX-License-Identifier: Apache-2.0
// Markdown of models as safe HTML. HTML that a model writes is shown as text; pictures of other
// servers become links, since the page loads nothing from elsewhere.
import DOMPurify from 'dompurify';
import { Marked, type Tokens } from 'marked';
import { loadHighlight, loadKatex } from '../model/parts';

const kMostHighlighted = 50_000; // Characters; longer code stays plain.

export function escaped(text: string): string {
  const names: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };
  return text.replace(/[&<>"']/g, (character) => names[character]);
}

function codeHtml({ text, lang }: Tokens.Code): string {
  const name = (lang ?? '').trim().split(/\s/, 1)[0];
  return (
    `<div class="code"><div class="bar"><span>${escaped(name)}</span><button type="button" class="copy">Copy</button></div>` +
    `<pre tabindex="0"><code data-language="${escaped(name)}">${escaped(text)}</code></pre></div>`
  );
}

function mathHtml(text: string, isBlock: boolean): string {
  const tag = isBlock ? 'div' : 'span';
  return `<${tag} class="math" data-block="${isBlock}">${escaped(text)}</${tag}>`;
}

interface MathToken extends Tokens.Generic {
  text: string;
  isBlock: boolean;
}

// A formula at the start of the text, in one of TeX's four pairs of marks.
export function mathAt(source: string): { raw: string; text: string; isBlock: boolean } | undefined {
  const found =
    /^\$\$([^]+?)\$\$/.exec(source) ?? /^\\\[([^]+?)\\\]/.exec(source) ?? /^\\\(([^]+?)\\\)/.exec(source) ??
    /^\$(?![\s$\d])((?:\\.|[^\\$\n])*?[^\s\\$])\$(?![\w$])/.exec(source) ??
    /^\$(\d(?:\\.|[^\\$\n])*?[\\^_=+](?:\\.|[^\\$\n])*?)\$(?![\w$])/.exec(source);
  return found ? { raw: found[0], text: found[1].trim(), isBlock: /^(\$\$|\\\[)/.test(found[0]) } : undefined;
}

const marked = new Marked({
  gfm: true,
  breaks: false,
  extensions: [
    {
      name: 'math',
      level: 'inline',
      start: (source: string) => source.search(/\$|\\\(|\\\[/),
      tokenizer(source: string) {
        const found = mathAt(source);
        return found && { type: 'math', ...found };
      },
      renderer: (token) => mathHtml((token as MathToken).text, (token as MathToken).isBlock),
    },
    {
      name: 'mathBlock',
      level: 'block',
      start: (source: string) => source.search(/\$\$|\\\[/),
      tokenizer(source: string) {
        const found = mathAt(source);
        return found?.isBlock ? { type: 'mathBlock', ...found } : undefined;
      },
      renderer: (token) => mathHtml((token as MathToken).text, true),
    },
  ],
  renderer: {
    code: codeHtml,
    html: ({ text }) => escaped(text),
    image: ({ href, text }) => `<a href="${escaped(href)}">${escaped(text || href)}</a>`,
  },
});

DOMPurify.addHook('afterSanitizeAttributes', (node) => {
  if (node.tagName === 'A') {
    node.setAttribute('target', '_blank');
    node.setAttribute('rel', 'noopener noreferrer');
  }
});

export function markdownHtml(text: string): string {
  return DOMPurify.sanitize(marked.parse(text, { async: false }), { FORBID_ATTR: ['style'], ADD_ATTR: ['target'] });
}

// Replaces formulas by MathML, which browsers draw themselves, and colours code.
export async function decorate(root: Element): Promise<void> {
  await Promise.all([drawMath(root), colourCode(root)]);
}

async function drawMath(root: Element): Promise<void> {
  const places = [...root.querySelectorAll<HTMLElement>('.math')];
  if (places.length === 0) {
    return;
  }
  const katex = (await loadKatex()).default;
  for (const place of places) {
    const options = { output: 'mathml', displayMode: place.dataset.block === 'true', throwOnError: false, maxExpand: 1000 };
    const html = katex.renderToString(place.textContent ?? '', options);
    place.innerHTML = DOMPurify.sanitize(html, { FORBID_ATTR: ['style'], ADD_TAGS: ['semantics', 'annotation'] });
  }
}

async function colourCode(root: Element): Promise<void> {
  const blocks = [...root.querySelectorAll<HTMLElement>('code[data-language]:not([data-language=""])')];
  if (blocks.length === 0) {
    return;
  }
  const { highlight } = await loadHighlight();
  for (const block of blocks) {
    const code = block.textContent ?? '';
    const html = code.length <= kMostHighlighted ? highlight(code, block.dataset.language!) : undefined;
    if (html !== undefined) {
      block.innerHTML = DOMPurify.sanitize(html, { FORBID_ATTR: ['style'] });
    }
  }
}
