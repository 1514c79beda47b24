import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { joinMetrics, serveTogether } from '../../../../origin/cli/start/origins-together.ts';
import { serve } from '../../../support/local-server.ts';

const metricsOf = (tokens: number) => `# HELP tokens_total Generated tokens.
# TYPE tokens_total counter
tokens_total{model="a {b} c"} ${tokens}

# HELP ready 1 while requests are accepted.
# TYPE ready gauge
ready 1
`;

async function origin(name: string, status: string) {
  const { port, stop } = await serve(({ url }, response) => {
    response.writeHead(status === 'ready' ? 200 : 503);
    response.end(url === '/metrics' ? metricsOf(3) : JSON.stringify({ status }));
  });
  onTestFinished(stop);
  return { name, metricsPort: port };
}

test('samples of a metric follow each other, and each says its origin', () => {
  expect(
    joinMetrics([
      ['origin-0', metricsOf(3)],
      ['origin-1', null],
      ['origin-2', metricsOf(4)],
    ]),
  ).toBe(
    `# HELP tokens_total Generated tokens.
# TYPE tokens_total counter
tokens_total{origin="origin-0",model="a {b} c"} 3
tokens_total{origin="origin-2",model="a {b} c"} 4
# HELP ready 1 while requests are accepted.
# TYPE ready gauge
ready{origin="origin-0"} 1
ready{origin="origin-2"} 1
`,
  );
});

test('the health is that of all origins: ready as long as one is', async () => {
  const healthOf = async (origins: Parameters<typeof serveTogether>[1]) => {
    const server = await serveTogether(0, origins);
    onTestFinished(() => void server.close());
    const response = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/health`);
    return [response.status, await response.json()];
  };
  const loading = await origin('origin-0', 'loading');
  const gone = { name: 'origin-2', metricsPort: 1 };
  expect(await healthOf([loading, await origin('origin-1', 'ready'), gone])).toEqual([
    200,
    {
      status: 'ready',
      origins: { 'origin-0': { status: 'loading' }, 'origin-1': { status: 'ready' }, 'origin-2': null },
    },
  ]);
  expect(await healthOf([loading, gone])).toEqual([
    503,
    { status: 'unhealthy', origins: { 'origin-0': { status: 'loading' }, 'origin-2': null } },
  ]);
});
