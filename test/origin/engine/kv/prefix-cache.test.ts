import { setImmediate } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import { Driver, storeBytes } from '../support/engine-driver.ts';
import { CHUNK, longPrompt, shape, tokensSoFar } from '../support/long-requests.ts';
import { plainTranscript } from '../support/reference-generation.ts';
import { ScriptedRunner } from '../support/scripted-runner.ts';
import { ordered, transcribe } from '../support/transcript.ts';
import { VOCABULARY } from '../support/vocabulary.ts';

describe('the prefix cache', () => {
  const cached = (driver: Driver, requestId: string) => {
    const started = driver.eventsOf(requestId).find(({ type }) => type === 'started');
    return started?.type === 'started' ? started.cachedTokens : null;
  };
  const again = (requestId: string, fields: object = {}) => ({
    ...longPrompt(requestId, 3 * CHUNK + 2),
    cacheNamespace: 'key',
    ...fields,
  });
  const prefix = (length: number) => Int32Array.from({ length }, (_, at) => at % 10);

  it('is used up to the last whole chunk; only the rest is computed', async () => {
    const runner = new ScriptedRunner(shape(2));
    const driver = new Driver(runner);
    driver.submit(again('first'));
    await driver.finish();
    runner.prefills.length = 0;
    driver.submit(again('second'));
    await driver.finish();
    expect(cached(driver, 'first')).toBe(0);
    expect(cached(driver, 'second')).toBe(3 * CHUNK);
    expect(runner.prefills).toEqual([2]);
    expect(driver.eventsOf('second').at(-1)).toMatchObject({ usage: { cachedTokens: 3 * CHUNK } });
  });

  it('serves an equal prompt that arrives at the same time', async () => {
    const driver = new Driver(new ScriptedRunner(shape(4)));
    driver.submit(again('first'));
    driver.submit(again('second'));
    await driver.finish();
    expect(cached(driver, 'second')).toBe(3 * CHUNK);
  });

  it('is shared by the prompts of one request', async () => {
    const driver = new Driver(new ScriptedRunner(shape(4)));
    const { prompts } = again('one');
    driver.submit(again('both', { prompts: [...prompts, ...prompts], cachePrompt: false }));
    await driver.finish();
    expect(driver.eventsOf('both').at(-1)).toMatchObject({ usage: { cachedTokens: 3 * CHUNK } });
  });

  it.each([
    ['the cache key differs', { cacheNamespace: 'other' }],
    ['the request opts out', { cachePrompt: false }],
    ['the request wants prompt logprobs', { promptTopLogprobs: 0 }],
  ])('is not used if %s', async (_, fields) => {
    const driver = new Driver(new ScriptedRunner(shape(2)));
    driver.submit(again('first'));
    await driver.finish();
    driver.submit(again('second', fields));
    await driver.finish();
    expect(cached(driver, 'second')).toBe(0);
  });

  it('is used up to the chunk of the first position whose logprob is wanted', async () => {
    const runner = new ScriptedRunner(shape(2));
    const driver = new Driver(runner);
    driver.submit(again('first'));
    await driver.finish();
    runner.prefills.length = 0;
    const { prompts } = again('');
    const scored = prompts.map((prompt) => ({ ...prompt, logprobsFrom: 2 * CHUNK + 1 }));
    driver.submit(again('second', { prompts: scored, promptTopLogprobs: 0 }));
    await driver.finish();
    expect(cached(driver, 'second')).toBe(2 * CHUNK);
    expect(runner.prefills).toEqual([CHUNK, 2]);
  });

  it.each([
    ['another that opts out', { cachePrompt: false }],
    ['one whose cache key looks like its namespace', { cacheNamespace: 'request first' }],
  ])('of a running request that opts out is not shared with %s', async (_, fields) => {
    const driver = new Driver(new ScriptedRunner(shape(2)));
    driver.submit(again('first', { cachePrompt: false }));
    driver.submit(again('second', fields));
    await driver.finish();
    expect(cached(driver, 'second')).toBe(0);
  });

  it('is not filled by a request that opts out', async () => {
    const driver = new Driver(new ScriptedRunner(shape(2)));
    driver.submit(again('first', { cachePrompt: false }));
    await driver.finish();
    driver.submit(again('second'));
    await driver.finish();
    expect(cached(driver, 'second')).toBe(0);
  });

  it('holds only prompts, never generated tokens', async () => {
    const driver = new Driver(new ScriptedRunner(shape(2)));
    driver.submit({ ...again('first'), prompts: [{ tokens: prefix(CHUNK + 2), maxTokens: 3 * CHUNK }] });
    await driver.finish();
    const ids = transcribe(driver.eventsOf('first'), 1).choices.get(0)?.ids ?? [];
    expect(ids).toHaveLength(3 * CHUNK);
    const tokens = Int32Array.from([...prefix(CHUNK + 2), ...ids, 1]);
    const second = again('second', { prompts: [{ tokens, maxTokens: 8 }] });
    driver.submit(second);
    await driver.finish();
    expect(cached(driver, 'second')).toBe(CHUNK);
    const transcript = transcribe(driver.eventsOf('second'), 1);
    expect(ordered(transcript)).toEqual(ordered(plainTranscript(second, shape(2))));
  });

  describe('beyond the slots', () => {
    /** An engine with a prefix store for some chunks, whose prefill runs cover two chunks. */
    const small = (chunks: number, slots = 1) => {
      const runner = new ScriptedRunner({ ...shape(slots), maxPrefillChunks: 2 });
      return { runner, driver: new Driver(runner, { prefixStoreBytes: storeBytes(runner, chunks) }) };
    };
    const other = (requestId: string) =>
      again(requestId, {
        prompts: [{ tokens: Int32Array.from({ length: 2 * CHUNK }, () => 3), maxTokens: 1 }],
      });

    it('serves a prompt that no slot holds any more', async () => {
      const { driver, runner } = small(10);
      for (const one of [again('first'), other('other')]) {
        driver.submit(one);
        await driver.finish();
      }
      runner.prefills.length = 0;
      const longer = again('longer', { prompts: [{ tokens: prefix(3 * CHUNK + 4), maxTokens: 1 }] });
      driver.submit(longer);
      await driver.finish();
      expect(cached(driver, 'longer')).toBe(3 * CHUNK);
      expect(runner.prefills).toEqual([4]);
    });

    it.each([1, CHUNK, 3 * CHUNK, 3 * CHUNK + 2])(
      'serves an equal prompt of %i tokens without a run of its own',
      async (length) => {
        const { driver, runner } = small(20);
        const equal = (requestId: string) =>
          again(requestId, { prompts: [{ tokens: prefix(length), maxTokens: 6 }], choices: 2 });
        for (const one of [equal('first'), other('other'), equal('second')]) {
          runner.prefills.length = 0;
          driver.submit(one);
          await driver.finish();
        }
        expect(cached(driver, 'second')).toBe(length);
        expect(runner.prefills).toEqual([]);
        const transcript = transcribe(driver.eventsOf('second'), 2);
        expect(ordered(transcript)).toEqual(ordered(plainTranscript(equal('second'), shape(1))));
      },
    );

    it('serves several equal prompts in one step', async () => {
      const { driver } = small(40, 8);
      driver.submit(again('first'));
      await driver.finish();
      for (let index = 0; index < 7; index++) driver.submit(again(`${index}`));
      await driver.step();
      for (let index = 0; index < 7; index++) expect(tokensSoFar(driver, `${index}`)).toBeGreaterThan(0);
    });

    it('restores so few prompts per step that running streams do not notice', async () => {
      const { driver } = small(200, 8);
      const long = (requestId: string) =>
        again(requestId, { prompts: [{ tokens: prefix(20 * CHUNK), maxTokens: 1 }] });
      driver.submit(long('first'));
      await driver.finish();
      for (const name of ['a', 'b', 'c']) driver.submit(long(name));
      await driver.step();
      expect(['a', 'b', 'c'].map((name) => cached(driver, name))).toEqual([20 * CHUNK, 20 * CHUNK, null]);
    });

    /** A prompt of 80 chunks that only the store has, and a stream beside it. Records restored positions. */
    const restoring = async (promptTopLogprobs: number | null) => {
      const { driver, runner } = small(81, 5);
      const long = (requestId: string) =>
        again(requestId, {
          prompts: [{ tokens: prefix(80 * CHUNK), maxTokens: 4 }],
          promptTopLogprobs,
        });
      driver.submit(long('first'));
      await driver.finish();
      // All slots at the same time.
      const prompts = [{ tokens: prefix(2), maxTokens: 20 }];
      for (const name of ['v', 'w', 'x', 'y', 'z']) {
        driver.submit(again(name, { prompts, cacheNamespace: name, cachePrompt: false, ignoreEos: true }));
      }
      await driver.finish();
      const streamed = [{ tokens: prefix(40 * CHUNK).map((id) => 9 - id), maxTokens: 500 }];
      for (const name of ['before', 'between', 'stream']) {
        driver.submit(again(name, { prompts: streamed, cachePrompt: false, ignoreEos: true }));
        while (tokensSoFar(driver, name) === 0) await driver.step();
      }
      // Runs of the streams have an idle row for the slot between them, which is too dear to close.
      driver.engine.abort('between');
      await driver.step();
      const restores: number[] = [];
      const { kvBytes } = runner;
      const write = kvBytes.write.bind(kvBytes);
      kvBytes.write = (slot, start, parts) => {
        restores.push(parts.reduce((sum, { length }) => sum + length / kvBytes.positionBytes, 0));
        write(slot, start, parts);
      };
      runner.prefills.length = 0;
      driver.submit(long('second'));
      await driver.step();
      return { driver, runner, restores, expected: plainTranscript(long('second'), shape(1)) };
    };

    it.each([null, 1])('restores 32 chunks of a prompt per step, with logprobs %s', async (logprobs) => {
      const { driver, runner, restores, expected } = await restoring(logprobs);
      expect(cached(driver, 'second')).toBe(80 * CHUNK - (logprobs === null ? 0 : CHUNK));
      expect(restores).toEqual([32 * CHUNK]);
      const before = tokensSoFar(driver, 'stream');
      await driver.step();
      await driver.step();
      expect(tokensSoFar(driver, 'stream')).toBe(before + 2);
      await driver.finish();
      expect(restores.slice(1, 3)).toEqual([32 * CHUNK, (logprobs === null ? 16 : 15) * CHUNK]);
      expect(runner.prefills).toEqual(logprobs === null ? [] : [CHUNK]);
      expect(ordered(transcribe(driver.eventsOf('second'), 1))).toEqual(ordered(expected));
    });

    it.each([null, 1])(
      'computes what is evicted while it is restored, with logprobs %s',
      async (logprobs) => {
        const { driver, restores, expected } = await restoring(logprobs);
        for (const name of ['before', 'stream']) driver.engine.abort(name);
        for (const [serial, tenantId] of ['x', 'y', 'z'].entries()) {
          const tokens = Int32Array.from({ length: 20 * CHUNK }, (_, at) => (serial + at * 7) % 10);
          driver.submit(again(`evicting ${serial}`, { tenantId, prompts: [{ tokens, maxTokens: 1 }] }));
        }
        await driver.finish();
        expect(restores.reduce((sum, positions) => sum + positions, 0)).toBeLessThan(80 * CHUNK);
        expect(ordered(transcribe(driver.eventsOf('second'), 1))).toEqual(ordered(expected));
      },
    );

    it('computes what is evicted while an earlier part is still copied from another slot', async () => {
      const runner = new ScriptedRunner({ ...shape(3), maxCopied: 1 });
      const driver = new Driver(runner, { prefixStoreBytes: storeBytes(runner, 8) });
      driver.submit(again('stored'));
      await driver.finish();
      const held = { tokens: Int32Array.of(...prefix(2 * CHUNK), 1, 1), maxTokens: 200 };
      // Takes the slot that has the prompt, and keeps two chunks of it.
      driver.submit(again('held', { prompts: [held] }));
      for (let step = 0; step < 4; step++) await driver.step();
      const scored = again('').prompts.map((prompt) => ({ ...prompt, logprobsFrom: 3 * CHUNK }));
      const restored = again('restored', { prompts: scored, promptTopLogprobs: 0 });
      driver.submit(restored);
      driver.submit(longPrompt('evicting', 12 * CHUNK, 'another'));
      for (let step = 0; step < 20; step++) await driver.step();
      driver.engine.abort('held');
      await driver.finish();
      expect(ordered(transcribe(driver.eventsOf('restored'), 1))).toEqual(
        ordered(plainTranscript(restored, shape(3))),
      );
    });

    it('keeps longest what was used last, also if a slot had it', async () => {
      const { driver } = small(8, 2);
      const short = (requestId: string, id: number) =>
        again(requestId, {
          prompts: [{ tokens: Int32Array.of(...prefix(CHUNK).fill(id), 1), maxTokens: 1 }],
        });
      for (const one of [
        again('first'),
        other('oldest'),
        again('second'),
        short('one', 1),
        short('two', 2),
      ]) {
        driver.submit(one);
        await driver.finish();
      }
      driver.submit(again('third'));
      await driver.finish();
      expect(cached(driver, 'third')).toBe(3 * CHUNK + 2);
    });

    it('gives a scored prompt its logprobs up to the last whole chunk', async () => {
      const { driver, runner } = small(10);
      const scored = (requestId: string) => again(requestId, { promptTopLogprobs: 3 });
      for (const one of [again('unscored'), scored('first'), scored('second')]) {
        runner.prefills.length = 0;
        driver.submit(one);
        await driver.finish();
      }
      expect(cached(driver, 'first')).toBe(0);
      expect(cached(driver, 'second')).toBe(3 * CHUNK);
      expect(runner.prefills).toEqual([2]);
      const transcript = transcribe(driver.eventsOf('second'), 1);
      expect(ordered(transcript)).toEqual(ordered(plainTranscript(scored('second'), shape(1))));
    });

    it('computes the last chunk again if the token after it was not likely', async () => {
      const found = new Set<number | null>();
      for (let id = 0; id < VOCABULARY; id++) {
        const { driver } = small(10);
        const scored = (requestId: string, next: number) =>
          again(requestId, {
            prompts: [{ tokens: Int32Array.of(...prefix(2 * CHUNK), next, 1), maxTokens: 1 }],
            promptTopLogprobs: 3,
          });
        for (const one of [scored('first', 0), scored('second', id)]) {
          driver.submit(one);
          await driver.finish();
        }
        const transcript = transcribe(driver.eventsOf('second'), 1);
        expect(ordered(transcript)).toEqual(ordered(plainTranscript(scored('second', id), shape(1))));
        found.add(cached(driver, 'second'));
      }
      expect(found).toEqual(new Set([CHUNK, 2 * CHUNK]));
    });

    it.each([
      ['reads', again('first'), again('second', { cachePrompt: false })],
      ['fills', again('first', { cachePrompt: false }), again('second')],
    ])('is not what a request that opts out %s', async (_, first, second) => {
      const { driver } = small(10);
      for (const one of [first, other('other'), second]) {
        driver.submit({ ...one, promptTopLogprobs: 1 });
        await driver.finish();
      }
      expect(cached(driver, 'second')).toBe(0);
    });
  });

  it('keeps only the position and key of an image, not its pixels', async () => {
    setFlagsFromString('--expose-gc');
    const collect: () => void = runInNewContext('gc');
    const driver = new Driver(new ScriptedRunner(shape(2)), { encodeImages: async () => [] });
    const seeing = (requestId: string) => {
      const { prompts } = again(requestId);
      const image = { at: 3, count: 4, key: 'picture', pixels: new Float32Array(1000) };
      return {
        submission: again(requestId, { prompts: [{ ...prompts[0], images: [image] }] }),
        pixels: new WeakRef(image.pixels),
      };
    };
    const ask = async (requestId: string) => {
      const { submission, pixels } = seeing(requestId);
      driver.submit(submission);
      while (driver.engine.awaitsPreparation) await setImmediate();
      await driver.finish();
      return pixels;
    };
    const first = await ask('first');
    // One collection may come before the last turn of the event loop that still holds the request.
    for (let round = 0; round < 50 && first.deref(); round += 1) {
      await setImmediate();
      collect();
    }
    expect(first.deref()).toBeUndefined();
    await ask('second');
    expect(cached(driver, 'second')).toBe(3 * CHUNK);
  });
});
