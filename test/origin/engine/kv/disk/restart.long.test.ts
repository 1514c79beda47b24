import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Submission } from '../../../../../origin/engine/messages.ts';
import { EngineClient, spawnEngineThread } from '../../../../../origin/engine/thread/engine-client.ts';
import type { EngineThreadData } from '../../../../../origin/engine/thread/engine-thread.ts';
import { textsOf } from '../../../../../origin/model/config/model-directory.ts';
import { Tokenizer } from '../../../../../origin/tokenizer/tokenizer.ts';
import type { GenerationEvent } from '../../../../../shared/generation.ts';
import { newDirectory } from '../../../../support/new-directory.ts';
import { TEST_SEED } from '../../../../support/random.ts';
import { writeFamilyModel } from '../../support/family-model.ts';
import { submission } from '../../support/submissions.ts';
import { ordered, transcribe, wireEvents } from '../../support/transcript.ts';

const DIRECTORY = join(import.meta.dirname, '../../../../../origin/models/continuo-mini');
const TEXT = `The tower stood at the edge of the village, where the river turned south. Nobody had lived in it for
years, but every evening a light burned in the highest window. The children told each other that a clockmaker was up there,
who repaired the hours that people had lost. One morning the light was gone, and the river had stopped as well.`;
const MIB = 2 ** 20;

const tokenizer = Tokenizer.of(textsOf(DIRECTORY));
const text = Int32Array.from(tokenizer.encode(TEXT, { addSpecialTokens: true, parseSpecial: false }));

const data = (prefixStoreBytes: number, directory: string | null): EngineThreadData => ({
  model: { directory: DIRECTORY, slots: 2, contextLength: 256, threads: 1, kvLimitBytes: 2 ** 30 },
  tokenBytes: tokenizer.tokenBytes,
  eosIds: tokenizer.eosIds,
  maxWaiting: 100,
  prefixStoreBytes,
  prefixDisk: directory === null ? null : { directory, limitBytes: 200 * MIB, secret: 'of the installation' },
});

/** Starts an engine, sends all requests at once, waits for them and for the disk, and stops it. */
async function run(options: EngineThreadData, requests: readonly Submission[]) {
  const warnings: string[] = [];
  const onWarning = (line: string) => void warnings.push(line);
  const client = new EngineClient({ spawn: () => spawnEngineThread(options), onWarning });
  await client.start();
  const outputs = await Promise.all(
    requests.map(async (request) => {
      const events: GenerationEvent[] = [];
      const ended = Promise.withResolvers<void>();
      await client.submit(request, (more) => {
        events.push(...wireEvents(more, request, options.tokenBytes));
        if (more.some(({ type }) => type === 'done' || type === 'error')) ended.resolve();
      });
      await ended.promise;
      return ordered(transcribe(events, request.choices));
    }),
  );
  const { status } = client;
  await client.stop();
  return { outputs, warnings, status };
}

const arrival = fc.record({
  length: fc.oneof(fc.integer({ min: 1, max: text.length }), fc.constantFrom(32, 64, 70, text.length)),
  maxTokens: fc.integer({ min: 0, max: 4 }),
  choices: fc.constantFrom(1, 1, 2),
  promptTopLogprobs: fc.option(fc.constantFrom(0, 5), { freq: 2 }),
  topLogprobs: fc.option(fc.constantFrom(0, 3), { freq: 2 }),
  tenantId: fc.constantFrom('a', 'a', 'a', 'b'),
  cachePrompt: fc.constantFrom(true, true, true, false),
});

/** Random requests whose prompts share prefixes, as a restart would see them again. */
const requests = fc.array(arrival, { minLength: 12, maxLength: 12 }).map((list) =>
  list.map(({ length, maxTokens, ...fields }, index) =>
    submission({
      requestId: `${index}`,
      prompts: [{ tokens: text.slice(0, length), maxTokens }],
      cacheNamespace: fields.tenantId,
      ...fields,
    }),
  ),
);

describe('the built-in model with prefixes on disk', () => {
  it('gives the same bits before and after a restart, with little memory and with much', async () => {
    const [batch] = fc.sample(requests, { numRuns: 1, seed: TEST_SEED });
    const plain = await run(data(0, null), batch!);
    for (const memory of [2 * MIB, 64 * MIB]) {
      const directory = newDirectory();
      const first = await run(data(memory, directory), batch!);
      const written = readdirSync(directory).length;
      expect(written).toBeGreaterThan(4);
      const second = await run(data(memory, directory), batch!);
      for (const { outputs, warnings } of [first, second]) {
        expect(outputs).toEqual(plain.outputs);
        expect(warnings).toEqual([]);
      }
      expect(second.status.prefixDisk?.readChunks).toBeGreaterThan(4);
      expect(second.status.prefixDisk?.failedChunks).toBe(0);
      // Damaged files are computed again.
      for (const file of readdirSync(directory).slice(0, 3)) writeFileSync(join(directory, file), 'damaged');
      const third = await run(data(memory, directory), batch!);
      expect(third.outputs).toEqual(plain.outputs);
      expect(third.warnings).toEqual(['prefix cache on disk: a damaged or foreign chunk was removed']);
    }
  });

  it('reports that it uses no disk without memory for prefixes, or if the directory cannot be created', async () => {
    const [request] = [submission({ requestId: 'one' })];
    const file = join(newDirectory(), 'file');
    writeFileSync(file, '');
    const without = await run(data(0, newDirectory()), [request]);
    const broken = await run(data(64 * MIB, join(file, 'below')), [request]);
    expect(without.warnings).toEqual([
      'prefix cache on disk: not used, because this model keeps no prefixes in main memory',
    ]);
    expect(broken.warnings).toEqual([expect.stringMatching(/^prefix cache on disk: not used: ENOTDIR/)]);
    expect(without.status.prefixDisk ?? broken.status.prefixDisk).toBeUndefined();
    expect(without.outputs).toEqual(broken.outputs);
  });
});

it('a model with states keeps no snapshot on disk, so none of another build or precision is used', async () => {
  const disk = newDirectory();
  const tokens = Int32Array.from({ length: 60 }, (_, at) => (at * 5) % 97);
  const ask = submission({ requestId: 'one', prompts: [{ tokens, maxTokens: 4 }], ignoreEos: true });
  for (const precision of ['fp32', 'int8'] as const) {
    const directory = join(newDirectory(), 'model');
    const { tokenBytes, eosIds } = await writeFamilyModel(directory, 'lfm2', precision);
    const on = (place: string | null): EngineThreadData => {
      const options = data(4 * MIB, place);
      return { ...options, model: { ...options.model, directory, contextLength: 128 }, tokenBytes, eosIds };
    };
    const [without, beside] = [await run(on(null), [ask]), await run(on(disk), [ask])];
    expect(beside.outputs).toEqual(without.outputs);
    expect(beside.warnings).toEqual([
      'prefix cache on disk: not used, because its files have no states of slots, which this model needs',
    ]);
  }
  expect(readdirSync(disk)).toEqual([]);
});
