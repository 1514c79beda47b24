import { expect, test } from 'vitest';
import { startWorker } from './support/worker.ts';
import { WorkerdLog } from './support/workerd-log.ts';

const NOBODY = { url: 'http://127.0.0.1:9', secret: 'not asked, at least 32 characters' };
const origin = { kind: 'origin', name: 'far', url: 'http://127.0.0.1:9' };
const server = {
  kind: 'openai',
  name: 'near',
  url: 'http://127.0.0.1:9',
  models: [{ id: 'm', contextLength: 9 }],
};
const upstreams = (...list: readonly object[]) => ({ UPSTREAMS: JSON.stringify(list) });

test.each([
  ['a variable', { RESERVATION_TTL_MS: 'soon' }, 'The variable RESERVATION_TTL_MS is invalid'],
  [
    'a page that is not an origin',
    { CORS_ORIGINS: 'https://app.example.com, www.example.com' },
    'CORS_ORIGINS.1 is invalid',
  ],
  ['an empty secret', { ORIGIN_SECRET: '' }, 'ORIGIN_SECRET is not set'],
  ['a short secret', { ORIGIN_SECRET: 'short' }, 'ORIGIN_SECRET has 5 characters; it must have at least 32'],
  ['the list of upstreams', { UPSTREAMS: '[' }, 'UPSTREAMS is not JSON'],
  ['an origin without its secret', upstreams({ ...origin, secret: 'FAR_SECRET' }), 'FAR_SECRET is not set'],
  ['a server without its key', upstreams({ ...server, apiKey: 'NEAR_KEY' }), 'NEAR_KEY is not set'],
  ['a missing binding', upstreams({ ...origin, binding: 'TUNNEL' }), 'no binding TUNNEL'],
  [
    'a binding that is a variable',
    upstreams({ ...origin, binding: 'ENVIRONMENT' }),
    'no binding ENVIRONMENT',
  ],
])(
  'answers every request with 500 in a misconfigured deployment and logs the cause: %s',
  async (_, vars, cause) => {
    const log = new WorkerdLog(/"event":"misconfigured"/);
    const worker = await startWorker(NOBODY, vars, { log });
    try {
      for (const answer of [await worker.request('/health'), await worker.post({ prompt: 'x' })]) {
        expect([answer.status, answer.headers.get('x-should-retry')]).toEqual([500, 'false']);
        const { error } = (await answer.json()) as { error: Record<string, unknown> };
        expect(error).toEqual({
          message: 'This server is not configured correctly.',
          type: 'server_error',
          param: null,
          code: 'internal_error',
        });
      }
      await expect.poll(() => log.lines.length).toBe(2);
      for (const line of log.lines) expect(line).toContain(cause);
    } finally {
      await worker.stop();
    }
  },
);
