import { expect, it } from 'vitest';
import type { Submission } from '../../../origin/engine/messages.ts';
import { Driver, storeBytes } from '../../origin/engine/support/engine-driver.ts';
import { NEUTRAL, submission } from '../../origin/engine/support/submissions.ts';
import { ordered, transcribe } from '../../origin/engine/support/transcript.ts';
import { onEachRunner, syntheticRunner } from './runner-tests.ts';
import type { RunnerCase } from './runners.ts';

/** KV in main memory on every provider: prefixes that no slot holds any more, and suspended sequences. */

const SLOTS = 2;
const CHUNK = 16;
const CHUNKS = 200;

const tokensOf = (seed: number, length: number) =>
  Int32Array.from({ length }, (_, at) => (at * (7 + seed) + 31 * seed) % 256);

/** A request whose events show the bits of its logits. */
const request = (requestId: string, tokens: Int32Array, fields: Partial<Submission> = {}): Submission =>
  submission({
    requestId,
    prompts: [{ tokens, maxTokens: 10 }],
    sampling: { ...NEUTRAL, seed: 5 },
    topLogprobs: 5,
    ignoreEos: true,
    ...fields,
  });

function keepsBits(one: RunnerCase): void {
  const opened = syntheticRunner(one, { slots: SLOTS, prefillChunk: CHUNK });

  const driver = (chunks: number) => {
    const { model, runner } = opened;
    const { tokenBytes, eosIds } = model.data;
    const prefixStoreBytes = chunks === 0 ? 0 : storeBytes(runner, chunks);
    return new Driver(runner, { prefixStoreBytes, tokenBytes, eosIds });
  };
  const outputOf = (engine: Driver, { requestId, choices }: Submission) =>
    ordered(transcribe(engine.eventsOf(requestId), choices));

  it('equal prompts, chats and evaluations have the same bits with and without a prefix store', async () => {
    const prompts = [1, 2, 3, 4].map((seed) => tokensOf(seed, 50));
    const evaluation = { prompts: [{ tokens: prompts[0]!, maxTokens: 0 }], promptTopLogprobs: 5 };
    const requests = [
      ...prompts.map((tokens, at) => request(`new ${at}`, tokens)),
      ...prompts.map((tokens, at) => request(`equal ${at}`, tokens)),
      ...prompts.map((tokens, at) => request(`chat ${at}`, Int32Array.of(...tokens, ...tokensOf(9, 30)))),
      ...[0, 1].map((at) => request(`evaluation ${at}`, prompts[0]!, evaluation)),
    ];
    const [stored, plain] = [driver(CHUNKS), driver(0)];
    for (const one of requests) {
      for (const engine of [stored, plain]) {
        engine.submit({ ...one, cachePrompt: engine === stored });
        await engine.finish();
      }
      expect(outputOf(stored, one)).toEqual(outputOf(plain, one));
    }
    const { hits = 0, restoredTokens = 0 } = stored.engine.status.prefixStore ?? {};
    expect(hits).toBeGreaterThanOrEqual(9);
    // Four equal prompts, three chunks of four chats, and an evaluation; two of them at most are in slots.
    expect(restoredTokens).toBeGreaterThanOrEqual(300);
  });

  // Kernels of CUDA are chosen by the number of rows, which suspension changes.
  it.skipIf(one.name === 'cuda')(
    'a suspended sequence has the bits of one that was never suspended',
    async () => {
      const work = [1, 2].map((seed) =>
        request(`flex ${seed}`, tokensOf(seed, 40), {
          flex: true,
          prompts: [{ tokens: tokensOf(seed, 40), maxTokens: 40 }],
        }),
      );
      const engine = driver(CHUNKS);
      for (const one of work) engine.submit(one);
      for (let step = 0; step < 12; step++) await engine.step();
      const urgent = [3, 4].map((seed) => request(`urgent ${seed}`, tokensOf(seed, 45)));
      for (const one of urgent) engine.submit(one);
      await engine.finish();
      expect(engine.engine.status).toMatchObject({ suspended: 0 });
      expect(engine.engine.status.suspensions).toBeGreaterThan(0);
      for (const one of [...work, ...urgent]) {
        const alone = driver(0);
        alone.submit({ ...one, flex: false });
        await alone.finish();
        expect(outputOf(engine, one)).toEqual(outputOf(alone, one));
      }
    },
  );
}

onEachRunner('KV in main memory', keepsBits);
