// SPDX-License-Identifier: Apache-2.0
// Lines of the Prometheus text format: names to sums over their labels.

export function metricsFrom(text: string): Map<string, number> {
  const values = new Map<string, number>();
  for (const line of text.split('\n')) {
    const found = /^([a-zA-Z_:][\w:]*)(?:\{.*\})? (\S+)/.exec(line);
    const value = Number(found?.[2]);
    if (found && Number.isFinite(value)) {
      values.set(found[1], (values.get(found[1]) ?? 0) + value);
    }
  }
  return values;
}
