import type { Miniflare } from 'miniflare';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { startWorkerd } from '../../support/workerd.ts';

/** A Worker with only the objects of idempotency keys. */
const ANSWER_WORKER = `
  export { IdempotentAnswer } from './replay/objects/idempotent-answer.ts';
  export default {
    async fetch(request, env) {
      const { key, method, args } = await request.json();
      const object = env.ANSWERS.get(env.ANSWERS.idFromName(key));
      return Response.json((await object[method](...args)) ?? null);
    },
  };
`;

const LONG_MS = 600_000;
const ANSWER = { status: 200, contentType: 'application/json', body: '{}' };

let workerd: Miniflare;
beforeAll(async () => {
  ({ workerd } = await startWorkerd(ANSWER_WORKER, { ANSWERS: 'IdempotentAnswer' }));
});
afterAll(() => workerd?.dispose());

function keyOf(key: string) {
  const call = async (method: string, ...args: readonly unknown[]) => {
    const body = JSON.stringify({ key, method, args });
    return (await workerd.dispatchFetch('http://answers/', { method: 'POST', body })).json();
  };
  return {
    claim: (claimant: string, asked = 'this', runningMs = LONG_MS) =>
      call('claim', claimant, asked, runningMs),
    keep: (claimant: string, answer = ANSWER) => call('keep', claimant, answer),
    release: (claimant: string) => call('release', claimant),
  };
}

describe('an idempotency key', () => {
  test('expires for a request that runs too long, which then changes nothing', async () => {
    const { claim, keep, release } = keyOf('outlived');
    await claim('first', 'this', 1);
    await eventually(
      () => claim('second'),
      (answer) => JSON.stringify(answer) === '{"turn":"run"}',
    );
    await keep('first', { ...ANSWER, body: '{"late":true}' });
    expect(await claim('third')).toEqual({ turn: 'wait' });
    await release('first');
    expect(await claim('third')).toEqual({ turn: 'wait' });
    await keep('second');
    await release('first');
    expect(await claim('third')).toEqual({ turn: 'replay', answer: ANSWER });
  });

  test('conflicts with another request, during and after the first one', async () => {
    const { claim, keep } = keyOf('asked');
    await claim('first');
    expect(await claim('second', 'that')).toEqual({ turn: 'mismatch' });
    await keep('first');
    expect(await claim('second', 'that')).toEqual({ turn: 'mismatch' });
    expect(await claim('second')).toEqual({ turn: 'replay', answer: ANSWER });
  });

  test('can be used again after its release', async () => {
    const { claim, release } = keyOf('released');
    await claim('first');
    await release('first');
    expect(await claim('second', 'that')).toEqual({ turn: 'run' });
    expect(await claim('third', 'that')).toEqual({ turn: 'wait' });
  });
});
