import { expect, test } from 'vitest';
import { createMetrics } from '../../../origin/http/metrics.ts';
import type { OriginHealth } from '../../../shared/origin-model.ts';

test('a model removed by a reload keeps its metrics until its last engine stops', async () => {
  const health: OriginHealth = { status: 'ready', models: [], running: 0, waiting: 0 };
  const model = { id: 'kept', created: 0, contextLength: 8, vocabularySize: 8, infill: false };
  const loaded = { ...model, aliases: [], defaults: {}, state: 'loaded' as const };
  let models = [loaded, { ...loaded, id: 'left' }];
  let engines = [{ model: 'left', running: 2, waiting: 0 }];
  const { registry } = createMetrics({ health: () => ({ ...health, models }), engines: () => engines });
  const linesOf = async (name: string) =>
    (await registry.metrics()).split('\n').filter((line) => line.includes(`model="${name}"`));
  expect(await linesOf('left')).toContain('continuo_origin_running_sequences{model="left"} 2');
  models = [loaded];
  for (let scrape = 0; scrape < 2; scrape += 1) {
    const lines = await linesOf('left');
    expect(lines).toContain('continuo_origin_running_sequences{model="left"} 2');
    expect(lines.filter((line) => line.includes('model_state'))).toEqual([]);
  }
  engines = [];
  expect(await linesOf('left')).toEqual([]);
  expect(await linesOf('kept')).toContain('continuo_origin_running_sequences{model="kept"} 0');
});

test('shows the models whose decode steps are CUDA graphs, and those that begin early', async () => {
  const health: OriginHealth = { status: 'ready', models: [], running: 0, waiting: 0 };
  const engine = { running: 0, waiting: 0 };
  const engines = [
    { ...engine, model: 'with', usesGraphs: true, runsAhead: true },
    { ...engine, model: 'without' },
  ];
  const { registry } = createMetrics({ health: () => health, engines: () => engines });
  const lines = (await registry.metrics())
    .split('\n')
    .filter((line) => /(cuda_graphs|runs_ahead)\{/.test(line));
  expect(lines).toEqual([
    'continuo_origin_cuda_graphs{model="with"} 1',
    'continuo_origin_cuda_graphs{model="without"} 0',
    'continuo_origin_runs_ahead{model="with"} 1',
    'continuo_origin_runs_ahead{model="without"} 0',
  ]);
});
