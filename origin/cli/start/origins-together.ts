import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { OriginHealth } from '@continuo/shared/origin-model.ts';

/** Metrics and health of several origins at one address. */

interface MeasuredOrigin {
  readonly name: string;
  /** On the loopback address. */
  readonly metricsPort: number | null;
}

const ANSWER_MS = 5_000;

/** Answers `/metrics` and `/health` for all origins, on the loopback address. */
export async function serveTogether(port: number, origins: readonly MeasuredOrigin[]): Promise<Server> {
  const server = createServer(async ({ url }, response) => {
    const { status, type, body } = await answer(url ?? '', origins);
    response.writeHead(status, { 'content-type': type }).end(body);
  });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  return server;
}

async function answer(path: string, origins: readonly MeasuredOrigin[]) {
  const type = 'application/json';
  if (path === '/metrics') {
    const texts = await ofEach(origins, path, (response) => response.text());
    return { status: 200, type: 'text/plain; version=0.0.4; charset=utf-8', body: joinMetrics(texts) };
  }
  if (path !== '/health') return { status: 404, type, body: '{}' };
  const states = await ofEach(origins, path, (response) => response.json() as Promise<OriginHealth>);
  const isReady = states.some(([, health]) => health?.status === 'ready');
  const body = { status: isReady ? 'ready' : 'unhealthy', origins: Object.fromEntries(states) };
  return { status: isReady ? 200 : 503, type, body: JSON.stringify(body) };
}

/** Null = the origin does not answer. */
const ofEach = <T>(
  origins: readonly MeasuredOrigin[],
  path: string,
  read: (response: Response) => Promise<T>,
): Promise<(readonly [name: string, value: T | null])[]> =>
  Promise.all(
    origins.map(async ({ name, metricsPort }) => {
      const answered = fetch(`http://127.0.0.1:${metricsPort}${path}`, {
        signal: AbortSignal.timeout(ANSWER_MS),
      });
      return [name, await answered.then(read).catch(() => null)] as const;
    }),
  );

/**
 * Joins texts in the format of Prometheus. Each sample gets the label `origin`, and those of one metric
 * follow each other, as the format demands.
 */
export function joinMetrics(texts: readonly (readonly [origin: string, text: string | null])[]): string {
  /** Lines of a metric by the one that has its type. */
  const metrics = new Map<string, string[]>();
  for (const [origin, text] of texts) {
    let [lines, help]: [string[], string] = [[], ''];
    for (const line of text?.split('\n') ?? []) {
      if (line.startsWith('# HELP')) help = line;
      else if (line.startsWith('# TYPE')) {
        lines = metrics.get(line) ?? [help, line];
        metrics.set(line, lines);
      } else if (line !== '') lines.push(labelled(line, `origin="${origin}"`));
    }
  }
  return `${[...metrics.values()].flat().join('\n')}\n`;
}

function labelled(sample: string, label: string): string {
  const end = sample.search(/[{ ]/);
  const [name, rest] = [sample.slice(0, end), sample.slice(end)];
  return `${name}{${label}${rest.startsWith('{') ? `,${rest.slice(1)}` : `}${rest}`}`;
}
