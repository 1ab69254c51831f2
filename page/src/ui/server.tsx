// SPDX-License-Identifier: Apache-2.0
// The server's queue, memory and caches, looked at every two seconds.
import { useEffect, useState } from 'preact/hooks';
import { ask, send, type Model } from '../api/client';
import { metricsFrom } from '../model/metrics';
import { useStore } from '../state/store';
import { Dialog } from './dialog';

const kEveryMs = 2000;

interface Props {
  model_alias?: string;
  model_type?: string;
  build_info?: string;
  default_generation_settings?: { n_ctx?: number };
}

interface Look {
  metrics: Map<string, number>;
  props: Props;
  load: number;
}

async function look(): Promise<Look> {
  const [text, props, load] = await Promise.all([
    send('/metrics').then((response) => response.text()),
    ask<Props>('/props'),
    ask<{ server_load: number }>('/load'),
  ]);
  return { metrics: metricsFrom(text), props, load: load.server_load };
}

export function ServerPanel() {
  const { models } = useStore();
  const [seen, setSeen] = useState<Look | null>(null);
  const [problem, setProblem] = useState('');
  useEffect(() => {
    let timer = 0;
    let isOpen = true;
    const again = async () => {
      try {
        const now = await look();
        setSeen(now);
        setProblem('');
      } catch (error) {
        setProblem((error as Error).message);
      }
      if (isOpen) {
        timer = setTimeout(again, kEveryMs);
      }
    };
    void again();
    return () => {
      isOpen = false;
      clearTimeout(timer);
    };
  }, []);
  return (
    <Dialog title="Server">
      {problem && <p class="problem" role="alert">{problem}</p>}
      {seen && (
        <table>
          <tbody>
            {rows(seen, models).map(([name, value]) => (
              <tr key={name}>
                <td>{name}</td>
                <td>{value}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </Dialog>
  );
}

function rows({ metrics, props, load }: Look, models: Model[]): [string, string][] {
  const value = (name: string) => metrics.get(`saker_${name}`) ?? 0;
  const mean = (name: string) => {
    const count = metrics.get(`vllm:${name}_count`) ?? 0;
    return count > 0 ? `${((metrics.get(`vllm:${name}_sum`) ?? 0) / count).toFixed(3)} s` : '–';
  };
  const asked = value('prefix_cache_queries_total');
  const share = asked > 0 ? `${((100 * value('prefix_cache_hits_total')) / asked).toFixed(1)} %` : '–';
  return [
    ['Model', `${props.model_alias ?? ''} (${props.model_type ?? ''})`],
    ['Adapters', models.filter((model) => model.parent).map((model) => model.id).join(', ') || '–'],
    ['Context', `${props.default_generation_settings?.n_ctx ?? 0} tokens`],
    ['Weights', bytes(models[0]?.meta?.size ?? 0)],
    ['Memory: most so far, usable', `${bytes(value('peak_memory_bytes'))}, ${bytes(value('usable_memory_bytes'))}`],
    ['Requests in progress', String(load)],
    ['Running, waiting', `${value('num_requests_running')}, ${value('num_requests_waiting')}`],
    ['Refused because the queue was full', String(value('admission_rejections_total'))],
    ['Tokens of prompts', String(value('prompt_tokens_total'))],
    ['Found in the prefix cache', `${value('prompt_tokens_cached_total')} (${share})`],
    ['Tokens of answers', String(value('generation_tokens_total'))],
    ['Mean time to the first token', mean('time_to_first_token_seconds')],
    ['Mean time of a token', mean('request_time_per_output_token_seconds')],
    ['Version', props.build_info ?? ''],
  ];
}

export function bytes(count: number): string {
  const units = ['bytes', 'KiB', 'MiB', 'GiB'];
  const power = count > 0 ? Math.min(3, Math.floor(Math.log2(count) / 10)) : 0;
  return `${(count / 1024 ** power).toFixed(power > 0 ? 1 : 0)} ${units[power]}`;
}
