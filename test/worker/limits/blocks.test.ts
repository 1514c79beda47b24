import fc from 'fast-check';
import { expect, test } from 'vitest';
import { syncBlock } from '../../../worker/limits/limiter-client.ts';

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
    { numRuns: 2_000 },
  );
});

test('what the database does not have is not sent to a limiter', async () => {
  const context = { env: {}, backoff: { random: () => 0, pause: async () => {} } } as unknown as Context;
  await syncBlock({ tenantId: 'tenant', keyId: null }, async () => null, context);
});
