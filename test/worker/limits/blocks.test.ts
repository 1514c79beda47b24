import fc from 'fast-check';
import { expect, test } from 'vitest';
import { syncBlock } from '../../../worker/limits/limiter-client.ts';
import { runs } from '../../support/random.ts';

type Context = Parameters<typeof syncBlock>[2];

test('whatever the order of concurrent changes at database and limiter, both end with the one stored last', async () => {
  await fc.assert(
    fc.asyncProperty(fc.scheduler(), fc.array(fc.boolean(), { maxLength: 5 }), async (scheduler, changes) => {
      let stored = false;
      let blocked = false;
      let isLost = true;
      const limiter = {
        block: (_: unknown, value: boolean) =>
          scheduler.schedule(Promise.resolve(), 'block').then(() => {
            blocked = value;
            // The first answer is lost on its way back.
            if (isLost) throw new Error(String((isLost = false)));
          }),
      };
      const context = {
        env: { LIMITER: { idFromName: () => 'id', get: () => limiter } },
        timers: { after: () => () => {} },
        backoff: { random: () => 0, pause: () => scheduler.schedule(Promise.resolve(), 'pause') },
      } as unknown as Context;
      const read = async () => {
        await scheduler.schedule(Promise.resolve(), 'read');
        const value = stored;
        await scheduler.schedule(Promise.resolve(), 'answer');
        return value;
      };
      const all = changes.map(async (value) => {
        await scheduler.schedule(Promise.resolve(), 'store');
        stored = value;
        await syncBlock({ tenantId: 'tenant', keyId: 'key' }, read, context);
      });
      await scheduler.waitFor(Promise.all(all));
      expect(blocked).toBe(stored);
    }),
    { numRuns: runs(2_000) },
  );
});

test('a change that is repeated because the Worker died at any moment of it ends in limiter and database', async () => {
  for (const value of [true, false]) {
    for (let died = 0; died < 4; died += 1) {
      let blocked = !value;
      let steps = 0;
      const step = async () => {
        if (steps++ === died) throw Object.assign(new Error('died'), { overloaded: true });
      };
      const context = {
        env: {
          LIMITER: {
            idFromName: () => 'id',
            get: () => ({
              block: async (_: unknown, now: boolean) => {
                await step();
                blocked = now;
                await step();
              },
            }),
          },
        },
        timers: { after: () => () => {} },
        backoff: { random: () => 0, pause: async () => {} },
      } as unknown as Context;
      const change = () =>
        syncBlock({ tenantId: 'tenant', keyId: 'key' }, () => step().then(() => value), context);
      await expect(change()).rejects.toThrow('died');
      await change();
      expect([died, blocked]).toEqual([died, value]);
    }
  }
});

test('what the database does not have is not sent to a limiter', async () => {
  const context = { env: {}, backoff: { random: () => 0, pause: async () => {} } } as unknown as Context;
  await syncBlock({ tenantId: 'tenant', keyId: null }, async () => null, context);
});
