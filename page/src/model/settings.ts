// SPDX-License-Identifier: Apache-2.0
// Settings of requests. An absent one is the server's default.

export interface Settings {
  model: string; // Empty: the server's first.
  options: Record<string, number>;
  stop: string[];
  thinking: '' | 'none' | 'low' | 'medium' | 'high';
  alternatives: number; // Alternatives of each token; 0: no token view.
  tools: string; // JSON: a list of tools; empty: none.
  schema: string; // JSON schema of the answer; empty: none.
  key: string;
}

export interface Preset {
  name: string;
  system: string;
  settings: Settings;
}

export const defaults: Settings = {
  model: '',
  options: {},
  stop: [],
  thinking: '',
  alternatives: 5,
  tools: '',
  schema: '',
  key: '',
};

interface Sampler {
  name: string;
  label: string;
  least: number;
  most: number;
  step: number;
}

export const samplers: Sampler[] = [
  { name: 'temperature', label: 'Temperature', least: 0, most: 5, step: 0.05 },
  { name: 'top_p', label: 'Top-p', least: 0, most: 1, step: 0.01 },
  { name: 'top_k', label: 'Top-k', least: 0, most: 1000, step: 1 },
  { name: 'min_p', label: 'Min-p', least: 0, most: 1, step: 0.01 },
  { name: 'repetition_penalty', label: 'Repetition penalty', least: 0.1, most: 3, step: 0.05 },
  { name: 'presence_penalty', label: 'Presence penalty', least: -2, most: 2, step: 0.1 },
  { name: 'frequency_penalty', label: 'Frequency penalty', least: -2, most: 2, step: 0.1 },
  { name: 'max_tokens', label: 'Most tokens', least: 1, most: 1_000_000, step: 1 },
  { name: 'seed', label: 'Seed', least: 0, most: 2 ** 31 - 1, step: 1 },
  { name: 'reasoning_budget_tokens', label: 'Reasoning budget', least: 0, most: 1_000_000, step: 1 },
];

// The members of a request beside its messages. Throws for tools or a schema that are no JSON.
export function requestOptions(settings: Settings, model: string): Record<string, unknown> {
  const options: Record<string, unknown> = { model, ...settings.options };
  // The same seed gives the same bits, so that an answer can be asked for again.
  options.seed ??= crypto.getRandomValues(new Uint32Array(1))[0] >>> 1;
  if (settings.stop.length > 0) {
    options.stop = settings.stop;
  }
  if (settings.thinking !== '') {
    options.reasoning_effort = settings.thinking;
    options.chat_template_kwargs = { enable_thinking: settings.thinking !== 'none' };
  }
  if (settings.alternatives > 0) {
    options.logprobs = true;
    options.top_logprobs = settings.alternatives;
  }
  if (settings.tools.trim() !== '') {
    options.tools = parsed('Tools', settings.tools);
  }
  if (settings.schema.trim() !== '') {
    const schema = parsed('Schema', settings.schema);
    options.response_format = { type: 'json_schema', json_schema: { name: 'answer', schema } };
  }
  return options;
}

function parsed(name: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(`${name}: ${(error as Error).message}`);
  }
}
