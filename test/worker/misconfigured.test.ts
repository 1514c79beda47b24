import { expect, test } from 'vitest';
import { startWorker } from './support/worker.ts';

const NOBODY = { url: 'http://127.0.0.1:9', secret: 'not asked' };
const origin = { kind: 'origin', name: 'far', url: 'http://127.0.0.1:9' };
const server = {
  kind: 'openai',
  name: 'near',
  url: 'http://127.0.0.1:9',
  models: [{ id: 'm', contextLength: 9 }],
};
const upstreams = (...list: readonly object[]) => ({ UPSTREAMS: JSON.stringify(list) });

test.each([
  ['a variable', { RESERVATION_TTL_MS: 'soon' }],
  ['a page that is not an origin', { CORS_ORIGINS: 'https://app.example.com, www.example.com' }],
  ['an empty secret', { ORIGIN_SECRET: '' }],
  ['the list of upstreams', { UPSTREAMS: '[' }],
  ['an origin without its secret', upstreams({ ...origin, secret: 'FAR_SECRET' })],
  ['a server without its key', upstreams({ ...server, apiKey: 'NEAR_KEY' })],
  ['a missing binding', upstreams({ ...origin, binding: 'TUNNEL' })],
  ['a binding that is a variable', upstreams({ ...origin, binding: 'ENVIRONMENT' })],
])('answers every request with 500 in a misconfigured deployment (%s)', async (_, vars) => {
  const worker = await startWorker(NOBODY, vars);
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
  } finally {
    await worker.stop();
  }
});
