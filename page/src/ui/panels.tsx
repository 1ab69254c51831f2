// SPDX-License-Identifier: Apache-2.0
import type { Panel } from '../state/store';
import { ComparePanel } from './compare';
import { InspectorPanel } from './inspector';
import { KeyPanel } from './key';
import { ServerPanel } from './server';
import { SettingsPanel } from './settings';

export function Panels({ panel }: { panel: Panel }) {
  switch (panel?.kind) {
    case 'settings':
      return <SettingsPanel />;
    case 'server':
      return <ServerPanel />;
    case 'keys':
      return <KeyPanel />;
    case 'inspector':
      return <InspectorPanel turn={panel.turn} />;
    case 'compare':
      return <ComparePanel turn={panel.turn} />;
    default:
      return null;
  }
}
