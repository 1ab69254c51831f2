// SPDX-License-Identifier: Apache-2.0
import type { Panel } from '../state/store';

export function Panels({ panel }: { panel: Panel }) {
  void panel;
  return null;
}
