// SPDX-License-Identifier: Apache-2.0
// Files as texts for a prompt.
import { loadPdf } from './parts';
import type { Attachment } from './tree';

const kMostBytes = 20 * 1024 * 1024;

// Throws one line for a file that is neither a text nor a PDF file with texts.
export async function readFile(file: File): Promise<Attachment> {
  if (file.size > kMostBytes) {
    throw new Error(`${file.name} has ${file.size} bytes, expected at most ${kMostBytes}`);
  }
  const bytes = new Uint8Array(await file.arrayBuffer());
  return { name: file.name, text: isPdf(bytes) ? await pdfText(file.name, bytes) : textOf(file.name, bytes) };
}

// The mark may stand behind other bytes; readers look through the first 1024.
function isPdf(bytes: Uint8Array): boolean {
  return new TextDecoder('latin1').decode(bytes.subarray(0, 1024)).includes('%PDF-');
}

async function pdfText(name: string, bytes: Uint8Array): Promise<string> {
  try {
    return await (await loadPdf()).pdfText(bytes);
  } catch (error) {
    throw new Error(`${name} ${(error as Error).message}`);
  }
}

function textOf(name: string, bytes: Uint8Array): string {
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new Error(`${name} is no text in UTF-8`);
  }
  if (text.includes('\0')) {
    throw new Error(`${name} is no text`);
  }
  return text;
}
