// SPDX-License-Identifier: Apache-2.0
// Settings of requests, presets of them, and the chat's system prompt.
import { useState } from 'preact/hooks';
import { changePresets, changeSettings } from '../state/server';
import { currentChat, store, useStore } from '../state/store';
import { setSystem } from '../state/chats';
import { defaults, samplers, type Settings } from '../model/settings';
import { Dialog } from './dialog';

export function SettingsPanel() {
  const state = useStore();
  const { settings } = state;
  return (
    <Dialog title="Settings">
      <Presets />
      <label>
        System prompt of this chat
        <textarea rows={3} value={currentChat(state).system} onInput={(event) => setSystem(event.currentTarget.value)} />
      </label>
      <div class="grid">
        {samplers.map((sampler) => (
          <NumberField key={sampler.name} sampler={sampler} settings={settings} />
        ))}
        <label>
          <Name text="Reasoning" isChanged={settings.thinking !== ''} />
          <select
            value={settings.thinking}
            onChange={(event) => changeSettings({ thinking: event.currentTarget.value as Settings['thinking'] })}
          >
            <option value="">as the model does</option>
            <option value="none">off</option>
            <option value="low">low</option>
            <option value="medium">medium</option>
            <option value="high">high</option>
          </select>
        </label>
        <label>
          <Name text="Alternatives of tokens" isChanged={settings.alternatives !== defaults.alternatives} />
          <input
            type="number"
            min={0}
            max={20}
            value={settings.alternatives}
            onChange={(event) => changeSettings({ alternatives: Math.min(20, Math.max(0, Math.round(event.currentTarget.valueAsNumber) || 0)) })}
          />
        </label>
      </div>
      <label>
        <Name text="Stop texts, one a line" isChanged={settings.stop.length > 0} />
        <textarea
          rows={2}
          value={settings.stop.join('\n')}
          onChange={(event) => changeSettings({ stop: event.currentTarget.value.split('\n').filter(Boolean) })}
        />
      </label>
      <JsonField label="Tools, a JSON list as in chat completions" name="tools" settings={settings} />
      <JsonField label="JSON schema of the answer" name="schema" settings={settings} />
      <div class="row">
        <button type="button" onClick={() => changeSettings({ ...defaults, key: settings.key, model: settings.model })}>
          Server's defaults
        </button>
        <button type="button" onClick={() => store.set({ panel: { kind: 'keys' } })}>API key</button>
      </div>
      <p class="hint">An empty field is the server's default. Ctrl+K: new chat; Ctrl+comma: settings; Escape: stop. <a href="/page/licenses.txt" target="_blank">Licences</a></p>
    </Dialog>
  );
}

function Name({ text, isChanged }: { text: string; isChanged: boolean }) {
  return <span class={isChanged ? 'changed' : ''}>{text}{isChanged ? ' (changed)' : ''}</span>;
}

function NumberField({ sampler, settings }: { sampler: (typeof samplers)[number]; settings: Settings }) {
  const { name, label, least, most, step } = sampler;
  const value = settings.options[name];
  const change = (text: string) => {
    const options = { ...settings.options };
    const number = Number(text);
    if (text.trim() === '' || !Number.isFinite(number)) {
      delete options[name];
    } else {
      options[name] = Math.min(most, Math.max(least, step === 1 ? Math.round(number) : number));
    }
    changeSettings({ options });
  };
  return (
    <label>
      <Name text={label} isChanged={value !== undefined} />
      <input
        type="number"
        min={least}
        max={most}
        step={step}
        placeholder="default"
        value={value ?? ''}
        onChange={(event) => change(event.currentTarget.value)}
      />
    </label>
  );
}

function JsonField({ label, name, settings }: { label: string; name: 'tools' | 'schema'; settings: Settings }) {
  let problem = '';
  try {
    JSON.parse(settings[name] || 'null');
  } catch (error) {
    problem = (error as Error).message;
  }
  return (
    <label>
      <Name text={label} isChanged={settings[name] !== ''} />
      <textarea
        rows={3}
        spellcheck={false}
        aria-invalid={problem !== ''}
        value={settings[name]}
        onInput={(event) => changeSettings({ [name]: event.currentTarget.value })}
      />
      {problem && <span class="problem">{problem}</span>}
    </label>
  );
}

function Presets() {
  const { presets, settings } = useStore();
  const [name, setName] = useState('');
  const save = () => {
    const system = currentChat().system;
    const kept = { ...settings, key: '' };
    changePresets([...presets.filter((one) => one.name !== name), { name, system, settings: kept }]);
    setName('');
  };
  const load = (wanted: string) => {
    const preset = presets.find((one) => one.name === wanted);
    if (preset) {
      changeSettings({ ...preset.settings, key: settings.key });
      setSystem(preset.system);
    }
  };
  return (
    <div class="row">
      <select aria-label="Load a preset" value="" onChange={(event) => load(event.currentTarget.value)}>
        <option value="">Presets</option>
        {presets.map((one) => (
          <option key={one.name} value={one.name}>{one.name}</option>
        ))}
      </select>
      <input aria-label="Name of a preset" placeholder="Name" value={name} onInput={(event) => setName(event.currentTarget.value)} />
      <button type="button" disabled={name.trim() === ''} onClick={save}>Save preset</button>
      <button
        type="button"
        disabled={!presets.some((one) => one.name === name)}
        onClick={() => changePresets(presets.filter((one) => one.name !== name))}
      >
        Delete preset
      </button>
    </div>
  );
}
