import { expect, onTestFinished, test } from 'vitest';
import { untilReady } from '../../../../origin/cli/start/readiness.ts';
import { serve } from '../../../support/local-server.ts';

const LONG_MS = 3_600_000;
const never = new AbortController().signal;

/** A server that answers with these statuses in turn, and on with the last. */
async function answering(...statuses: number[]): Promise<string> {
  const { url, stop } = await serve((_, response) => {
    const status = statuses.length > 1 ? statuses.shift() : statuses[0];
    response.writeHead(status ?? 500).end();
  });
  onTestFinished(stop);
  return `${url}/`;
}

test('waits for a server that is not ready yet', async () => {
  await untilReady(await answering(503, 503, 200), LONG_MS, never);
});

test('gives up at once on a health check that answers 500', async () => {
  const broken = untilReady(await answering(503, 500), LONG_MS, never);
  await expect(broken).rejects.toThrow('answered its health check with 500');
});

test('gives up after the time limit, and at once when aborted', async () => {
  const url = await answering(503);
  await expect(untilReady(url, 0, never)).rejects.toThrow('was not ready within 0 s');
  await expect(untilReady(url, LONG_MS, AbortSignal.abort())).rejects.toThrow(/aborted/);
});
