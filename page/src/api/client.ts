// SPDX-License-Identifier: Apache-2.0
// Requests to the server that sent this page.

export class ServerError extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

let key = '';

export function useKey(value: string): void {
  key = value;
}

export async function send(path: string, body?: unknown, signal?: AbortSignal): Promise<Response> {
  const headers: Record<string, string> = key === '' ? {} : { Authorization: `Bearer ${key}` };
  if (body !== undefined) {
    headers['Content-Type'] = 'application/json';
  }
  const init: RequestInit = { method: body === undefined ? 'GET' : 'POST', headers, signal };
  const response = await fetch(path, body === undefined ? init : { ...init, body: JSON.stringify(body) });
  if (!response.ok) {
    throw new ServerError(response.status, await errorOf(response));
  }
  return response;
}

export async function ask<T>(path: string, body?: unknown): Promise<T> {
  return (await send(path, body)).json() as Promise<T>;
}

async function errorOf(response: Response): Promise<string> {
  const text = await response.text();
  try {
    const error = (JSON.parse(text) as { error?: { message?: string; param?: string } }).error;
    if (error?.message) {
      return error.message;
    }
  } catch {
    // No JSON: the text itself.
  }
  return text.slice(0, 300) || `status ${response.status}`;
}

export interface Model {
  id: string;
  parent: string | null;
  context_length?: number;
  meta?: { n_vocab?: number; size?: number };
}

export async function models(): Promise<Model[]> {
  return (await ask<{ data: Model[] }>('/v1/models')).data;
}
