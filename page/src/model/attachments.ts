// SPDX-License-Identifier: Apache-2.0
// Files as texts for a prompt.
import type { Attachment } from './tree';

const kMostBytes = 20 * 1024 * 1024;

// Throws one line for a file that is no text.
export async function readFile(file: File): Promise<Attachment> {
  if (file.size > kMostBytes) {
    throw new Error(`${file.name} has ${file.size} bytes, expected at most ${kMostBytes}`);
  }
  const bytes = new Uint8Array(await file.arrayBuffer());
  return { name: file.name, text: textOf(file.name, bytes) };
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
