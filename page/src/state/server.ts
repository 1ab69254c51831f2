// SPDX-License-Identifier: Apache-2.0
// What the page knows of the server, and the settings of requests.
import { models, ServerError, useKey } from '../api/client';
import { saveSetting } from './database';
import { report, store } from './store';
import type { Preset, Settings } from '../model/settings';

export async function loadModels(): Promise<void> {
  useKey(store.get().settings.key);
  try {
    store.set({ models: await models(), problem: '' });
  } catch (error) {
    if (error instanceof ServerError && error.status === 401) {
      store.set({ panel: { kind: 'keys' } });
    } else {
      report(error);
    }
  }
}

export function changeSettings(change: Partial<Settings>): void {
  const settings = { ...store.get().settings, ...change };
  store.set({ settings });
  saveSetting('settings', settings);
}

export function changePresets(presets: Preset[]): void {
  store.set({ presets });
  saveSetting('presets', presets);
}
