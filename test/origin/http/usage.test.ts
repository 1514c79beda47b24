import { describe, expect, test } from 'vitest';
import { request } from '../../support/generation-request.ts';
import { eventsOf } from './generation-events.ts';
import { originForEachTest } from './running-origin.ts';

const origin = originForEachTest();

describe('GET /usage', () => {
  const account = async (name: string) => (await origin.call(`/usage?account=${name}`)).json();

  test('returns the usage of a generation, also after a disconnect, and null for other names', async () => {
    await eventsOf(await origin.call('/generate', { body: request({ account: 'whole' }) }));
    expect(await account('whole')).toMatchObject({
      ended: true,
      usage: { promptTokens: 3 },
      finishReasons: ['length'],
    });
    expect(await account('other')).toBeNull();
    expect((await origin.error('/usage?account=whole', { signature: null })).status).toBe(401);

    origin.engine.script = (engine, id) =>
      engine.say(
        id,
        { type: 'started', prompt: 0, cachedTokens: 0, queueMs: 0 },
        { type: 'token', choice: 0, text: 'a', completionTokens: 2 },
      );
    const controller = new AbortController();
    const call = origin.call('/generate', { body: request({ account: 'left' }), signal: controller.signal });
    const used = {
      usage: { promptTokens: 3, cachedTokens: 0, completionTokens: 2 },
      finishReasons: [],
      firstTokenMs: expect.any(Number),
    };
    await call;
    expect(await account('left')).toEqual({ ...used, ended: false });
    controller.abort();
    await expect.poll(() => account('left')).toEqual({ ...used, ended: true });
  });
});
