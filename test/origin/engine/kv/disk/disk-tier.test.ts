import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import fs from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { DiskTier, type DiskTierOptions } from '../../../../../origin/engine/kv/disk/disk-tier.ts';
import { PrefixStore } from '../../../../../origin/engine/kv/prefix-store.ts';
import type { Submission } from '../../../../../origin/engine/messages.ts';
import type { ModelRunner } from '../../../../../origin/model/model-runner.ts';
import { newDirectory } from '../../../../support/new-directory.ts';
import { runs } from '../../../../support/random.ts';
import { Driver, storeBytes } from '../../support/engine-driver.ts';
import { CHUNK, longPrompt, shape } from '../../support/long-requests.ts';
import { ScriptedRunner } from '../../support/scripted-runner.ts';
import * as workload from '../../support/workload.ts';
import { faultyFileSystem } from './faulty-file-system.ts';

/** More than any file of the scripted models has. */
const FILE_BYTES = 2000;

function tier({ shape, kvBytes }: ModelRunner, directory: string, options: Partial<DiskTierOptions> = {}) {
  return new DiskTier({
    directory,
    limitBytes: 1e9,
    queueBytes: 1e6,
    maxReadMs: 60_000,
    chunk: shape.prefillChunk,
    positionBytes: kvBytes.positionBytes,
    vocabularySize: shape.vocabularySize,
    identity: 'model',
    fs,
    id: 'test',
    secret: 'of the installation',
    now: Date.now,
    warn: () => undefined,
    ...options,
  });
}

/** An engine with a disk, as after a start: its memory is empty. */
async function start(runner: ScriptedRunner, directory: string, options: Partial<DiskTierOptions> = {}) {
  const disk = tier(runner, directory, options);
  await disk.settled();
  const driver = new Driver(runner, { prefixStoreBytes: storeBytes(runner, 1000), disk });
  return { driver, disk };
}

const LENGTH = 3 * CHUNK + 2;
const prompt = (requestId: string, fields: Partial<Submission> = {}) => ({
  ...longPrompt(requestId, LENGTH),
  cacheNamespace: 'key',
  ...fields,
});

async function run(driver: Driver, submission: Submission): Promise<number | null> {
  driver.submit(submission);
  await driver.finish();
  const started = driver.eventsOf(submission.requestId).find(({ type }) => type === 'started');
  return started?.type === 'started' ? started.cachedTokens : null;
}

describe('prefixes on disk', () => {
  it('outlive the engine: an equal prompt needs no run of the model', async () => {
    const runner = new ScriptedRunner(shape(2));
    const directory = newDirectory();
    expect(await run((await start(runner, directory)).driver, prompt('first'))).toBe(0);
    expect(readdirSync(directory)).toHaveLength(4);
    runner.prefills.length = 0;
    const { driver, disk } = await start(runner, directory);
    expect(await run(driver, prompt('second'))).toBe(LENGTH);
    expect(runner.prefills).toEqual([]);
    expect(disk.status).toMatchObject({ files: 4, readChunks: 4, writtenChunks: 0, failedChunks: 0 });
    expect(await run(driver, prompt('third'))).toBe(LENGTH);
    expect(disk.status.readChunks).toBe(4);
  });

  it.each([
    ['the cache key differs', { cacheNamespace: 'other' }, {}],
    ['the request opts out', { cachePrompt: false }, {}],
    ['the model differs', {}, { identity: 'other model' }],
    ['the installation has another secret', {}, { secret: 'other' }],
  ])('are not used if %s', async (_, fields, options) => {
    const runner = new ScriptedRunner(shape(2));
    const directory = newDirectory();
    await run((await start(runner, directory)).driver, prompt('first'));
    const { driver, disk } = await start(runner, directory, options);
    expect(await run(driver, prompt('second', fields))).toBe(0);
    expect(disk.status.readChunks).toBe(0);
  });

  it('are not written if the request opts out', async () => {
    const runner = new ScriptedRunner(shape(2));
    const directory = newDirectory();
    await run((await start(runner, directory)).driver, prompt('first', { cachePrompt: false }));
    expect(readdirSync(directory)).toEqual([]);
  });

  it('hold no token of the prompt', async () => {
    const runner = new ScriptedRunner({ ...shape(2), vocabularySize: 70_000 });
    const directory = newDirectory();
    const tokens = Int32Array.from({ length: LENGTH }, (_, at) => 0x10101 + at);
    await run(
      (await start(runner, directory)).driver,
      prompt('first', { prompts: [{ tokens, maxTokens: 1 }] }),
    );
    const ids = Buffer.from(tokens.buffer);
    for (const file of readdirSync(directory)) {
      const bytes = readFileSync(join(directory, file));
      for (let at = 0; at < ids.length; at += 4) expect(bytes.includes(ids.subarray(at, at + 4))).toBe(false);
    }
  });

  it('delay no request that has none', async () => {
    const runner = new ScriptedRunner(shape(2));
    const { driver } = await start(runner, newDirectory());
    driver.submit(prompt('first'));
    expect(driver.engine.status).toMatchObject({ running: 1, waiting: 0 });
    await driver.finish();
    driver.submit(prompt('in memory'));
    expect(driver.engine.status).toMatchObject({ running: 1, waiting: 0 });
    await driver.finish();
  });

  it('are removed with those that a failed run has used', async () => {
    const broken = { now: false };
    const beforeRun = (kind: string) => {
      if (kind === 'decode' && broken.now) throw new Error('injected');
    };
    const runner = new ScriptedRunner(shape(2), { beforeRun });
    const directory = newDirectory();
    const { driver } = await start(runner, directory);
    await run(driver, prompt('first'));
    await run(driver, prompt('longer', { prompts: [{ tokens: longTokens(5 * CHUNK), maxTokens: 2 }] }));
    await run(driver, prompt('other tenant', { cacheNamespace: 'other' }));
    expect(readdirSync(directory)).toHaveLength(4 + 2 + 4);
    broken.now = true;
    await run(driver, prompt('broken'));
    expect(readdirSync(directory)).toHaveLength(4);
    broken.now = false;
    expect(await run((await start(runner, directory)).driver, prompt('again'))).toBe(0);
  });

  it('are not used if they were removed while they were read', async () => {
    const runner = new ScriptedRunner(shape(2));
    const directory = newDirectory();
    const { tokens } = prompt('').prompts[0]!;
    await run((await start(runner, directory)).driver, prompt('first'));
    for (const isRemoved of [false, true]) {
      const gate = Promise.withResolvers<void>();
      let closed = 0;
      const open = async (...args: Parameters<typeof fs.open>) => {
        const handle = await fs.open(...args);
        const close = async () => {
          closed++;
          await gate.promise;
          await handle.close();
        };
        return { read: handle.read.bind(handle), close } as typeof handle;
      };
      const disk = tier(runner, directory, { fs: { ...fs, open } });
      await disk.settled();
      const { prefillChunk, vocabularySize } = runner.shape;
      const memory = { chunk: prefillChunk, kvBytes: runner.kvBytes, vocabularySize, budgetBytes: 1e6 };
      const store = new PrefixStore(memory, disk);
      const wanted = { namespace: 'cache key', tokens, limit: tokens.length };
      const loading = disk.load(store, [wanted], new AbortController().signal);
      while (closed < 4) await setImmediate();
      if (isRemoved) store.drop('cache key', tokens);
      gate.resolve();
      await loading;
      expect(store.open('cache key', tokens, tokens.length).chunks).toHaveLength(isRemoved ? 0 : 4);
    }
  });

  it('delay a request no longer than their limit if the disk hangs', async () => {
    const runner = new ScriptedRunner(shape(2));
    const directory = newDirectory();
    const writing = await start(runner, directory);
    for (const cacheNamespace of ['key', 'other'])
      await run(writing.driver, prompt(cacheNamespace, { cacheNamespace }));
    const hangs = Promise.withResolvers<never>();
    const open: typeof fs.open = (path, flags, mode) =>
      flags === 'r' ? hangs.promise : fs.open(path, flags, mode);
    const { driver } = await start(runner, directory, { fs: { ...fs, open }, maxReadMs: 5 });
    expect(await run(driver, prompt('second'))).toBe(0);
    driver.submit(prompt('third', { cacheNamespace: 'other' }));
    // The disk still hangs, so it is not asked.
    expect(driver.engine.status).toMatchObject({ running: 1, waiting: 0 });
    hangs.reject(new Error('injected'));
  });

  it('give the bits of an engine without them, over restarts, evictions and faults of the disk', async () => {
    let read = 0;
    let failed = 0;
    let requests = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.array(workload.arrivals, { minLength: 2, maxLength: 3 }),
        // Chunks in memory and on disk: so few that they are evicted all the time, or all.
        fc.constantFrom(1, 2, 5, 1000),
        fc.constantFrom(3, 20, 1000),
        fc.constantFrom(0, 30, 8, 8),
        fc.infiniteStream(fc.nat(1000)),
        async (phases, chunks, files, faultEvery, numbers) => {
          const random = numbers[Symbol.iterator]();
          const directory = newDirectory();
          const runner = new ScriptedRunner(workload.shape(3));
          const fails = () => faultEvery > 0 && random.next().value % faultEvery === 0;
          for (const arrivals of phases) {
            const disk = tier(runner, directory, {
              limitBytes: files * FILE_BYTES,
              queueBytes: 10 * FILE_BYTES,
              fs: faultyFileSystem('EIO', fails),
            });
            await disk.settled();
            const driver = new Driver(runner, { prefixStoreBytes: storeBytes(runner, chunks), disk });
            await workload.play(driver, arrivals);
            for (const arrival of arrivals) workload.expectReference(driver, arrival, workload.shape(3));
            requests += arrivals.length;
            read += disk.status.readChunks;
            failed += disk.status.failedChunks;
            expect(disk.status.bytes).toBeLessThanOrEqual(files * FILE_BYTES);
            if (faultEvery > 0) damage(directory, () => random.next().value);
          }
        },
      ),
      // Twice what the counts below need: real files are written in any order, and a chunk that is still
      // being written is computed.
      { numRuns: runs(60) },
    );
    expect(requests).toBeGreaterThan(runs(250));
    expect(read).toBeGreaterThan(runs(100));
    expect(failed).toBeGreaterThan(runs(100));
  });
});

const longTokens = (length: number) => Int32Array.from({ length }, (_, at) => at % 10);

/** Damages every third file: cuts it off, flips a bit of it, or replaces it by another one. */
function damage(directory: string, random: () => number): void {
  const files = readdirSync(directory);
  for (const file of files) {
    const path = join(directory, file);
    const bytes = readFileSync(path);
    const kind = random() % 9;
    if (kind === 0) writeFileSync(path, bytes.subarray(0, random() % (bytes.length + 1)));
    else if (kind === 1) {
      const at = random() % Math.max(1, bytes.length);
      bytes[at]! ^= 1 << (random() % 8);
      writeFileSync(path, bytes);
    } else if (kind === 2) {
      writeFileSync(path, readFileSync(join(directory, files[random() % files.length]!)));
    }
  }
}
