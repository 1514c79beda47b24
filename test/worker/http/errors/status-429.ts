import { tenantWithKey } from '../../admin/admin-client.ts';
import { MODEL } from '../../support/fake-origin.ts';
import { acceptedFor } from '../../support/scripts.ts';
import type { RunningWorker } from '../../support/worker.ts';
import type { ErrorCase } from './case.ts';

/** Sends requests as a new tenant with these limits. */
async function limited(worker: RunningWorker, id: string, limits: Readonly<Record<string, number>>) {
  const { key } = await tenantWithKey(worker, id, limits);
  return (fields: Readonly<Record<string, unknown>> = {}) =>
    worker.post(
      { model: MODEL.id, prompt: 'Hi', max_tokens: 4, ...fields },
      { headers: { authorization: `Bearer ${key}` } },
    );
}

const passing = { 'x-should-retry': 'true' };
const lasting = { 'x-should-retry': 'false', 'retry-after': null, 'retry-after-ms': null };

export const STATUS_429: readonly ErrorCase[] = [
  {
    name: 'too many requests',
    send: async (worker) => {
      const post = await limited(worker, 'requests', { requests_per_minute: 1 });
      await (await post()).text();
      return post();
    },
    type: 'requests',
    code: 'rate_limit_exceeded',
    param: null,
    message:
      /^Rate limit reached for org\/tiny in tenant requests on requests per min \(RPM\): Limit 1, Used 1, Requested 1\. Please try again in [\d.ms]+\.$/,
    headers: passing,
  },
  {
    name: 'too many tokens',
    send: async (worker) => {
      const post = await limited(worker, 'tokens', { tokens_per_minute: 10 });
      await (await post()).text();
      return post({ max_tokens: 8 });
    },
    type: 'tokens',
    code: 'rate_limit_exceeded',
    param: null,
    message: /^Rate limit reached for org\/tiny in tenant tokens on tokens per min \(TPM\): Limit 10, /,
    headers: passing,
  },
  {
    name: 'more tokens than the limit per minute',
    send: async (worker) => (await limited(worker, 'large', { tokens_per_minute: 10 }))({ max_tokens: 60 }),
    type: 'tokens',
    code: 'rate_limit_exceeded',
    param: null,
    message: /^Request too large for org\/tiny .* must be reduced\.$/,
    headers: lasting,
  },
  {
    name: 'too many concurrent requests',
    send: async (worker, origin) => {
      const post = await limited(worker, 'concurrent', { concurrent_requests: 1 });
      origin.script = async (request, wire) => {
        wire.send(...acceptedFor(request));
        await wire.closed;
      };
      const running = await post({ stream: true });
      const refused = await post();
      await running.body?.cancel();
      return refused;
    },
    type: 'requests',
    code: 'rate_limit_exceeded',
    param: null,
    message: /on concurrent requests: Limit 1, Used 1, Requested 1/,
    // Depends on the age of the running request; quota.test.ts has the exact values.
    headers: { ...passing, 'retry-after': /^[1-9]\d*$/ },
  },
  {
    name: 'a spent budget',
    send: async (worker) => (await limited(worker, 'spent', { tokens_per_day: 10 }))({ max_tokens: 60 }),
    type: 'insufficient_quota',
    code: 'insufficient_quota',
    param: null,
    message: /^Quota exceeded for org\/tiny in tenant spent on tokens per day/,
    headers: lasting,
  },
];
