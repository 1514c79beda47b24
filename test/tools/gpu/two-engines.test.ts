import { expect, it } from 'vitest';
import { EngineClient, spawnEngineThread } from '../../../origin/engine/thread/engine-client.ts';
import { createEngineLocks } from '../../../origin/process/engine-locks.ts';
import { NEUTRAL, submission } from '../../origin/engine/support/submissions.ts';
import { syntheticEngine } from '../../origin/engine/support/synthetic-engine.ts';
import { providersAtHand } from './providers.ts';

/** Two engines of one process that use the same device at the same time. */

const REQUESTS = 2;
const TOKENS = 8;

async function answersOf(client: EngineClient): Promise<string[]> {
  return Promise.all(
    Array.from({ length: REQUESTS }, async (_, serial) => {
      const texts: string[] = [];
      const ended = Promise.withResolvers<void>();
      const prompt = Int32Array.from({ length: 20 }, (_, at) => (at * 7 + serial) % 256);
      const request = submission({
        requestId: `${serial}`,
        prompts: [{ tokens: prompt, maxTokens: TOKENS }],
        sampling: { ...NEUTRAL, temperature: 0 },
        ignoreEos: true,
      });
      await client.submit(request, (events) => {
        for (const event of events) {
          if (event.type === 'token') texts.push(event.text);
          if (event.type === 'done' || event.type === 'error') {
            texts.push(event.type);
            ended.resolve();
          }
        }
      });
      await ended.promise;
      return texts.join('');
    }),
  );
}

for (const { provider, device, absent } of providersAtHand()) {
  it.skipIf(absent !== null)(
    `two engines on ${provider} in one process give the answers of one alone, also after a reload`,
    async () => {
      const precision = provider === 'cuda' ? 'float16' : 'float32';
      const model = syntheticEngine({ precision, contextLength: 128 });
      const engineLocks = createEngineLocks();
      const data = { ...model.data, model: { ...model.data.model, device, engineLocks } };
      const newEngine = () => new EngineClient({ spawn: () => spawnEngineThread(data) });
      const clients = [newEngine(), newEngine()];
      await clients[0]!.start();
      const alone = await answersOf(clients[0]!);
      expect(alone.every((text) => text.endsWith('done'))).toBe(true);
      await clients[1]!.start();
      const together = await Promise.all(clients.map(answersOf));
      expect(clients.map(({ status }) => status.usesGraphs)).toEqual(Array(2).fill(provider === 'cuda'));
      // An engine that takes the place of a stopped one, as after a reload.
      await clients[0]!.stop();
      const reloaded = newEngine();
      await reloaded.start();
      expect((await answersOf(reloaded)).every((text) => text.endsWith('done'))).toBe(true);
      expect(reloaded.status.usesGraphs).toBe(provider === 'cuda');
      await Promise.all([reloaded, clients[1]!].map((client) => client.stop()));
      if (provider === 'cpu') expect(together).toEqual([alone, alone]);
      else expect(together.flat().every((text) => text.endsWith('done'))).toBe(true);
    },
  );
}
