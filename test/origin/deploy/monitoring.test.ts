import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { createMetrics } from '../../../origin/http/metrics.ts';

const ROOT = path.resolve(import.meta.dirname, '../../..');
const read = (file: string) => readFileSync(path.join(ROOT, file), 'utf8');

interface Rules {
  readonly groups: readonly {
    readonly rules: readonly { readonly alert: string; readonly expr: string }[];
  }[];
}
interface Dashboard {
  readonly panels: readonly {
    readonly title: string;
    readonly targets: readonly { readonly expr: string }[];
  }[];
}

const { groups } = parse(read('origin/deploy/monitoring/alerts.yaml')) as Rules;
const alerts = groups.flatMap(({ rules }) => rules);
const dashboard = JSON.parse(read('origin/deploy/monitoring/dashboard.json')) as Dashboard;
const queries = [
  ...alerts.map(({ alert, expr }) => [alert, expr] as const),
  ...dashboard.panels.flatMap(({ title, targets }) => targets.map(({ expr }) => [title, expr] as const)),
];

/** Names of all series, those of histograms included. */
async function seriesNames(): Promise<ReadonlySet<string>> {
  const { registry } = createMetrics({
    health: () => ({ status: 'ready', models: [], running: 0, waiting: 0 }),
    engines: () => [],
  });
  const metrics = await registry.getMetricsAsJSON();
  return new Set(
    metrics.flatMap(({ name, type }) =>
      String(type) === 'histogram' ? ['_bucket', '_sum', '_count'].map((part) => name + part) : [name],
    ),
  );
}

test('alerts and dashboard ask only for metrics that the origin has', async () => {
  const names = await seriesNames();
  expect(queries.length).toBeGreaterThan(20);
  for (const [title, query] of queries) {
    const asked = query.match(/\b(continuo_origin_|gen_ai_server_|vllm:)\w+/g) ?? [];
    expect([title, asked.length]).not.toEqual([title, 0]);
    expect([title, asked.filter((name) => !names.has(name))]).toEqual([title, []]);
  }
});

test('the runbook explains every alert, and its test covers every alert', () => {
  const runbook = read('docs/operating.md');
  const tested = read('origin/deploy/monitoring/alerts.test.yaml');
  for (const { alert } of alerts) {
    expect(runbook).toContain(`| \`${alert}\` |`);
    expect(tested).toContain(`alertname: ${alert}`);
  }
});

const promtool = (...args: string[]) => spawnSync('promtool', args, { cwd: ROOT, encoding: 'utf8' });

test.runIf(promtool('--version').status === 0)(
  'promtool accepts the alerts, and each fires as its test says',
  () => {
    const { status, stdout, stderr } = promtool('test', 'rules', 'origin/deploy/monitoring/alerts.test.yaml');
    expect([status, stdout + stderr]).toEqual([0, expect.stringContaining('SUCCESS')]);
  },
);
