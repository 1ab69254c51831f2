// SPDX-License-Identifier: Apache-2.0
// Asks for the key of a server that wants one.
import { useState } from 'preact/hooks';
import { changeSettings, loadModels } from '../state/server';
import { store } from '../state/store';
import { closePanel, Dialog } from './dialog';

export function KeyPanel() {
  const [key, setKey] = useState(store.get().settings.key);
  const submit = (event: Event) => {
    event.preventDefault();
    changeSettings({ key: key.trim() });
    closePanel();
    void loadModels();
  };
  return (
    <Dialog title="The server wants a key">
      <form class="row" onSubmit={submit}>
        <label class="space">
          API key
          <input type="password" autocomplete="off" value={key} onInput={(event) => setKey(event.currentTarget.value)} />
        </label>
        <button type="submit" class="main">Use</button>
      </form>
      <p class="hint">The key stays in this browser.</p>
    </Dialog>
  );
}
