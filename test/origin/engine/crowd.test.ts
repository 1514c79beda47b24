import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { textsOf } from '../../../origin/model/config/model-directory.ts';
import type { ModelRunner } from '../../../origin/model/model-runner.ts';
import { openModel } from '../../../origin/model/open/open-model.ts';
import { SimdKernel } from '../../../origin/sampling/kernel/simd-kernel.ts';
import { Tokenizer } from '../../../origin/tokenizer/tokenizer.ts';
import { Driver } from './support/engine-driver.ts';
import { submission } from './support/submissions.ts';
import { transcribe } from './support/transcript.ts';

const DIRECTORY = path.join(import.meta.dirname, '../../../origin/models/continuo-mini');
const SLOTS = 4;

/** One request of 256 sequences against many small ones, on the built-in model. */
describe('a request with as many sequences as the waiting queue has places', () => {
  const tokenizer = Tokenizer.of(textsOf(DIRECTORY));
  const encode = (text: string) =>
    Int32Array.from(tokenizer.encode(text, { addSpecialTokens: true, parseSpecial: false }));
  let runner: ModelRunner;
  let kernel: SimdKernel;

  beforeAll(async () => {
    kernel = new SimdKernel();
    const size = { slots: SLOTS, contextLength: 64, prefillChunk: 16, threads: 1, kvLimitBytes: 2 ** 30 };
    ({ runner } = await openModel({ directory: DIRECTORY, ...size }, (length) => kernel.allocate(length)));
  });
  afterAll(() => runner.dispose());

  const start = () => {
    const { tokenBytes, eosIds } = tokenizer;
    const driver = new Driver(runner, { kernel, tokenBytes, eosIds, maxWaiting: 256 });
    const prompts = ['a', 'b'].map((text) => ({
      tokens: encode(text),
      maxTokens: 20,
    }));
    driver.submit(
      submission({ requestId: 'attack', tenantId: 'greedy', prompts, choices: 128, ignoreEos: true }),
    );
    return driver;
  };
  const finished = (driver: Driver) =>
    driver.eventsOf('attack').flatMap((event) => (event.type === 'finish' ? [event.choice] : []));
  const idsOf = (driver: Driver, choice: number) =>
    transcribe(driver.eventsOf('attack'), 128).choices.get(choice)?.ids;

  it('leaves the next slots to other tenants, and keeps its tokens', async () => {
    const driver = start();
    for (let step = 0; step < 5; step++) await driver.step();
    const send = (tenantId: string, count: number) =>
      Array.from({ length: count }, (_, serial) => {
        const requestId = `${tenantId} ${serial}`;
        const prompts = [{ tokens: encode('Hello'), maxTokens: 4 }];
        driver.submit(submission({ requestId, tenantId, prompts, ignoreEos: true }));
        return requestId;
      });
    const quiet = send('quiet', 4);
    const busy = send('busy', 40);
    const untilDone = async (requests: readonly string[]) => {
      while (requests.some((id) => driver.eventsOf(id).at(-1)?.type !== 'done')) await driver.step();
    };
    expect([...driver.refused.keys()]).toEqual([]);
    await untilDone(quiet);
    // Only the sequences that ran before: a share of four slots for three tenants is two.
    expect(finished(driver).length).toBeLessThanOrEqual(SLOTS);
    await untilDone(busy);
    // Forty small requests take twenty rounds of their two slots, which is five rounds of long sequences in
    // the other two.
    expect(finished(driver).length).toBeLessThanOrEqual(SLOTS + 5 * 2);

    const alone = start();
    while (finished(alone).length < finished(driver).length) await alone.step();
    for (const choice of finished(driver)) expect(idsOf(driver, choice)).toEqual(idsOf(alone, choice));
  });
});
