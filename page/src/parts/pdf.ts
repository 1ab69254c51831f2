// SPDX-License-Identifier: Apache-2.0
// Texts of PDF files, as a file of its own that the page loads with the first of them. Files are
// parsed in a worker, which ends with its file.
import { getDocument, GlobalWorkerOptions, PasswordException } from 'pdfjs-dist/legacy/build/pdf.mjs';

const kMostPages = 2000;
const kMostCharacters = 5_000_000;
const kMostMilliseconds = 60_000;

GlobalWorkerOptions.workerSrc = '/page/pdf.worker.js';

type Task = ReturnType<typeof getDocument>;

// The text of all pages, an empty line between two. Throws a reason that follows the file's name.
export async function pdfText(data: Uint8Array): Promise<string> {
  // Texts alone are wanted: nothing is drawn, and no font is loaded.
  const task = getDocument({ data, disableFontFace: true, useSystemFonts: false, useWorkerFetch: false, useWasm: false, verbosity: 0 });
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`takes longer than ${kMostMilliseconds / 1000} s to read`)), kMostMilliseconds);
  });
  try {
    return await Promise.race([textOf(task), late]);
  } finally {
    clearTimeout(timer);
    await task.destroy();
  }
}

async function opened(task: Task) {
  try {
    return await task.promise;
  } catch (error) {
    throw new Error(error instanceof PasswordException ? 'needs a password' : `is no PDF file that can be read: ${(error as Error).message}`);
  }
}

async function textOf(task: Task): Promise<string> {
  const file = await opened(task);
  if (file.numPages > kMostPages) {
    throw new Error(`has ${file.numPages} pages, expected at most ${kMostPages}`);
  }
  const pages: string[] = [];
  let length = 0;
  for (let number = 1; number <= file.numPages; number++) {
    const page = await file.getPage(number);
    const text = linesOf((await page.getTextContent()).items);
    page.cleanup();
    length += text.length;
    if (length > kMostCharacters) {
      throw new Error(`has more than ${kMostCharacters} characters`);
    }
    if (text !== '') {
      pages.push(text);
    }
  }
  if (pages.length === 0) {
    throw new Error('has no text: its pages may be pictures');
  }
  return pages.join('\n\n');
}

function linesOf(items: object[]): string {
  const pieces = items.map((item) => ('str' in item && 'hasEOL' in item ? item.str + (item.hasEOL ? '\n' : '') : ''));
  return pieces.join('').replaceAll('\0', '').trim();
}
