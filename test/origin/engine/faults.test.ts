import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { failureOutcome, programOf } from '../../../origin/compiler/compile-jobs.ts';
import { EngineFailure } from '../../../origin/engine/runs/engine.ts';
import { compileProgram } from '../../../origin/grammar/compile.ts';
import type { Program } from '../../../origin/grammar/program/program.ts';
import type { CompiledGrammar } from '../../../origin/grammar/runtime/constraint.ts';
import { GrammarRuntime } from '../../../origin/grammar/runtime/grammar-runtime.ts';
import { GrammarVocabulary } from '../../../origin/grammar/runtime/grammar-vocabulary.ts';
import { bugTrace } from '../../../shared/error-details.ts';
import { ApiError, toApiError } from '../../../shared/errors.ts';
import { runs } from '../../support/random.ts';
import { Driver, storeBytes } from './support/engine-driver.ts';
import { grammarOf, TOKENS_ONLY } from './support/positional-grammar.ts';
import { type ScriptedOptions, ScriptedRunner } from './support/scripted-runner.ts';
import { anySubmission, NEUTRAL, submission } from './support/submissions.ts';
import { transcribe } from './support/transcript.ts';
import { BOS, EOS, TOKEN_BYTES, VOCABULARY } from './support/vocabulary.ts';

const shape = { slots: 4, contextLength: 64, prefillChunk: 8, vocabularySize: VOCABULARY, minRows: 1 };
const plain = (requestId: string) => submission({ requestId, ignoreEos: true });

/** Returns a runner that throws in the faulty runs; runs are counted from 0. */
function failingRunner(
  faulty: (run: number, kind: string) => boolean,
  options: ScriptedOptions = {},
): ScriptedRunner {
  let run = 0;
  return new ScriptedRunner(shape, {
    ...options,
    beforeRun: (kind) => {
      if (faulty(run++, kind)) throw new Error('the device is gone');
    },
  });
}

const grammarFrom = (program: Program) => new GrammarRuntime(program, new GrammarVocabulary(TOKEN_BYTES));

const lastOf = (driver: Driver, requestId: string) => driver.eventsOf(requestId).at(-1);

describe('a failed run of the model', () => {
  it('fails only the requests in it, with a retryable error and their usage', async () => {
    let broken = false;
    const driver = new Driver(failingRunner((_, kind) => broken && kind === 'decode'));
    driver.submit(plain('first'));
    driver.submit({ ...plain('second'), prompts: [{ tokens: Int32Array.of(BOS, 3), maxTokens: 1 }] });
    await driver.step();
    broken = true;
    await driver.step();
    broken = false;
    await driver.finish();
    expect(lastOf(driver, 'first')).toMatchObject({
      type: 'error',
      code: 'upstream_error',
      retryable: true,
      usage: { promptTokens: 4, completionTokens: 2 },
    });
    expect(lastOf(driver, 'second')).toMatchObject({ type: 'done' });
    driver.submit(plain('third'));
    await driver.finish();
    expect(lastOf(driver, 'third')).toMatchObject({ type: 'done' });
  });

  it('leaves nothing in the prefix cache', async () => {
    const tokens = Int32Array.from({ length: 20 }, (_, at) => at % 5);
    let broken = false;
    const driver = new Driver(failingRunner((_, kind) => broken && kind === 'decode'));
    driver.submit({ ...plain('first'), prompts: [{ tokens, maxTokens: 8 }] });
    for (let step = 0; step < 4; step++) await driver.step();
    broken = true;
    await driver.step();
    broken = false;
    driver.submit({ ...plain('second'), prompts: [{ tokens, maxTokens: 8 }] });
    await driver.finish();
    expect(lastOf(driver, 'first')?.type).toBe('error');
    expect(lastOf(driver, 'second')).toMatchObject({ usage: { cachedTokens: 0 } });
  });

  it('is tolerated twice in a row; the third one stops the engine after every request has its error', async () => {
    const driver = new Driver(failingRunner((run) => run !== 2));
    for (const name of ['a', 'b']) {
      driver.submit(plain(name));
      await driver.finish();
    }
    driver.submit({ ...plain('c'), prompts: [{ tokens: Int32Array.of(BOS), maxTokens: 1 }] });
    await driver.finish();
    expect(lastOf(driver, 'c')?.type).toBe('done');
    for (const name of ['d', 'e']) {
      driver.submit(plain(name));
      await driver.finish();
      expect(driver.engine.status.healthy).toBe(true);
    }
    driver.submit(plain('f'));
    await expect(driver.finish()).rejects.toThrow(EngineFailure);
    expect(driver.engine.status.healthy).toBe(false);
    expect(lastOf(driver, 'f')).toMatchObject({ type: 'error', retryable: true });
  });

  it('stops the engine if it was a KV copy, because the slots no longer match the records', async () => {
    const driver = new Driver(failingRunner((_, kind) => kind === 'copy'));
    driver.submit({ ...plain('many'), choices: 3 });
    await expect(driver.finish()).rejects.toThrow(EngineFailure);
  });

  it('gives every request exactly one terminal event, whichever runs fail', async () => {
    const workload = fc.array(anySubmission(10), { minLength: 1, maxLength: 8, size: 'max' });
    const faults = fc.uniqueArray(fc.nat(13), { maxLength: 6, size: 'max' });
    await fc.assert(
      fc.asyncProperty(workload, faults, async (requests, faulty) => {
        const runner = failingRunner(
          (run, kind) => kind !== 'copy' && run % 3 === 0 && faulty.includes(run / 3),
        );
        const driver = new Driver(runner);
        requests.forEach((request, index) => {
          driver.submit({ ...request, requestId: `${index}` });
        });
        await driver.finish();
        requests.forEach(({ choices }, index) => {
          expect(transcribe(driver.eventsOf(`${index}`), choices).end).not.toBeNull();
        });
        expect(driver.engine.status).toMatchObject({ running: 0, waiting: 0 });
      }),
      { numRuns: runs(150) },
    );
  });
});

describe('a request that forbids every token', () => {
  it('fails with a non-retryable error, while others continue', async () => {
    const driver = new Driver(new ScriptedRunner(shape));
    const sampling = { ...NEUTRAL, allowedTokenIds: [EOS] };
    driver.submit({ ...plain('stuck'), ignoreEos: false, minTokens: 3, sampling });
    driver.submit(plain('other'));
    await driver.finish();
    expect(lastOf(driver, 'stuck')).toMatchObject({ type: 'error', code: 'invalid_value', retryable: false });
    expect(lastOf(driver, 'other')).toMatchObject({ type: 'done' });
  });
});

describe('logits that are not numbers', () => {
  it.each([
    ['of the prompt', (kind: string) => kind === 'prefill', 0],
    ['of the prompt, with prompt logprobs,', (kind: string) => kind === 'prefill', 2],
    ['of a later token', (kind: string) => kind === 'decode', null],
  ])('%s fail only their request, with a retryable error', async (_, spoiled, promptTopLogprobs) => {
    let spoil = false;
    const runner = new ScriptedRunner(shape);
    const { prefill, decode } = runner;
    runner.prefill = async (...run) => {
      const logits = await prefill.apply(runner, run);
      return spoil && spoiled('prefill') ? logits.fill(Number.NaN) : logits;
    };
    runner.decode = (batch) => {
      const logits = decode.call(runner, batch);
      if (spoil && spoiled('decode') && logits instanceof Float32Array)
        logits.fill(Number.NaN, 0, VOCABULARY);
      return logits;
    };
    const driver = new Driver(runner);
    driver.submit({ ...plain('bad'), promptTopLogprobs });
    if (promptTopLogprobs === null) await driver.step();
    spoil = true;
    await driver.step();
    spoil = false;
    driver.submit(plain('good'));
    await driver.finish();
    expect(lastOf(driver, 'bad')).toMatchObject({ type: 'error', code: 'upstream_error', retryable: true });
    expect(lastOf(driver, 'good')).toMatchObject({ type: 'done' });
  });

  it('remove their prompt from the prefix store', async () => {
    const runner = new ScriptedRunner(shape);
    const prefill = runner.prefill.bind(runner);
    let spoil = true;
    runner.prefill = async (chunk, signal) => {
      const logits = await prefill(chunk, signal);
      return spoil ? logits.fill(Number.NaN) : logits;
    };
    const driver = new Driver(runner, { prefixStoreBytes: storeBytes(runner, 10) });
    const prompts = [{ tokens: Int32Array.from({ length: 20 }, (_, at) => at % 7), maxTokens: 1 }];
    for (const requestId of ['bad', 'good', 'cached']) {
      driver.submit({ ...plain(requestId), prompts });
      await driver.finish();
      spoil = false;
    }
    expect(lastOf(driver, 'bad')).toMatchObject({ type: 'error' });
    expect(lastOf(driver, 'good')).toMatchObject({ usage: { cachedTokens: 0 } });
    expect(lastOf(driver, 'cached')).toMatchObject({ usage: { cachedTokens: 20 } });
  });
});

describe('a grammar', () => {
  /** Allows only the given tokens, one after the other. */
  const fixedText = (ids: readonly number[]): CompiledGrammar => ({
    start: () => {
      let at = 0;
      const mask = new Uint32Array((VOCABULARY + 31) >>> 5);
      return {
        ...TOKENS_ONLY,
        get accepting() {
          return at === ids.length;
        },
        mask: () => {
          mask.fill(0);
          const next = ids[at];
          if (next !== undefined) mask[next >>> 5]! |= 1 << (next & 31);
          return mask;
        },
        accept: (token) => {
          if (token !== ids[at]) throw new Error('the grammar does not allow this token');
          at++;
        },
      };
    },
  });
  const constrained = (requestId: string) => submission({ requestId, constraint: 'abc', stop: [] });

  it.each([
    ['with the end token', false, { completionTokens: 4 }],
    ['without a token if ignoreEos is set', true, { completionTokens: 3 }],
  ])('ends the text at a complete match, %s', async (_, ignoreEos, expected) => {
    const driver = new Driver(new ScriptedRunner(shape), { compile: () => fixedText([0, 1, 2]) });
    driver.submit({ ...constrained('r'), ignoreEos });
    await new Promise(setImmediate);
    await driver.finish();
    const { choices } = transcribe(driver.eventsOf('r'), 1);
    expect(choices.get(0)).toMatchObject({
      text: 'abc',
      finish: { reason: 'stop', stopReason: null, ...expected },
    });
  });

  it('fails where it allows no token, because the text is not complete', async () => {
    const driver = new Driver(new ScriptedRunner(shape), {
      compile: () => grammarOf([[0], [], [1]], VOCABULARY),
    });
    driver.submit(constrained('r'));
    await new Promise(setImmediate);
    await driver.finish();
    expect(lastOf(driver, 'r')).toMatchObject({ type: 'error', code: 'invalid_grammar', retryable: false });
  });

  it('does not end early at an end token whose text it allows', async () => {
    const options = { compile: () => grammarOf([[0, EOS], [1], [2]], VOCABULARY) };
    const driver = new Driver(new ScriptedRunner(shape), options);
    const sampling = { ...NEUTRAL, logitBias: [[EOS, 100] satisfies [number, number]] };
    driver.submit({ ...constrained('r'), ignoreEos: false, sampling });
    await new Promise(setImmediate);
    await driver.finish();
    const { choices } = transcribe(driver.eventsOf('r'), 1);
    expect(choices.get(0)).toMatchObject({ text: 'abc', finish: { reason: 'stop', completionTokens: 4 } });
  });

  it('may end with a reference to the end token, but not before it', async () => {
    const value = 'start: /[ab]+/ </s>';
    const grammar = grammarFrom(compileProgram({ type: 'lark', value }));
    const driver = new Driver(new ScriptedRunner(shape), { compile: () => grammar });
    const sampling = { ...NEUTRAL, logitBias: [[EOS, 100] satisfies [number, number]] };
    driver.submit({ ...constrained('r'), ignoreEos: false, sampling });
    await new Promise(setImmediate);
    await driver.finish();
    const { choices } = transcribe(driver.eventsOf('r'), 1);
    expect(choices.get(0)).toMatchObject({
      text: expect.stringMatching(/^[ab]+$/),
      finish: { reason: 'stop' },
    });
  });

  it('fails its request before any other event if its first mask exceeds the work budget', async () => {
    const driver = new Driver(new ScriptedRunner(shape), {
      compile: () => ({
        start: () => ({
          ...fixedText([0]).start(),
          mask: () => {
            throw new ApiError('invalid_grammar', 'The grammar is too ambiguous');
          },
        }),
      }),
    });
    driver.submit(constrained('r'));
    await new Promise(setImmediate);
    await driver.finish();
    expect(driver.eventsOf('r')).toMatchObject([
      { type: 'error', code: 'invalid_grammar', retryable: false },
    ]);
  });

  it('counts as waiting while it compiles, and other requests run meanwhile', async () => {
    const { promise, resolve } = Promise.withResolvers<CompiledGrammar>();
    const driver = new Driver(new ScriptedRunner(shape), { compile: () => promise });
    const submittedAt = driver.now;
    driver.submit(constrained('r'));
    driver.submit(plain('other'));
    await driver.finish();
    expect(driver.engine.awaitsPreparation).toBe(true);
    const waited = driver.now - submittedAt;
    resolve(fixedText([0]));
    await new Promise(setImmediate);
    await driver.finish();
    expect(lastOf(driver, 'r')).toMatchObject({ type: 'done', timings: { queueMs: waited } });
  });

  it('that is invalid fails its request with the error of the compiler', async () => {
    const driver = new Driver(new ScriptedRunner(shape), {
      compile: async () => {
        throw new ApiError('invalid_grammar', 'no rule called root', { param: 'grammar' });
      },
    });
    driver.submit(constrained('r'));
    await new Promise(setImmediate);
    await driver.finish();
    expect(driver.eventsOf('r')).toEqual([
      {
        type: 'error',
        code: 'invalid_grammar',
        message: 'no rule called root',
        param: 'grammar',
        retryable: false,
      },
    ]);
    expect(driver.engine.idle).toBe(true);
  });

  it('that a defect keeps from compiling fails with 500, and only the trace of the defect is reported', async () => {
    const defect = new TypeError('"the schema of the caller" has no type');
    const driver = new Driver(new ScriptedRunner(shape), {
      compile: async () => grammarFrom(programOf(structuredClone(failureOutcome(defect)))),
    });
    driver.submit(constrained('r'));
    await new Promise(setImmediate);
    await driver.finish();
    expect(lastOf(driver, 'r')).toMatchObject({
      code: 'internal_error',
      message: toApiError(defect).message,
    });
    const trace = bugTrace(defect);
    expect(trace.frames.length).toBeGreaterThan(0);
    expect(driver.reports).toContainEqual({ type: 'defect', trace });
    expect(JSON.stringify(driver.reports)).not.toContain('of the caller');
  });

  it('that compiles after its request was aborted has no effect', async () => {
    const { promise, resolve } = Promise.withResolvers<CompiledGrammar>();
    const driver = new Driver(new ScriptedRunner(shape), { compile: () => promise });
    driver.submit(constrained('r'));
    driver.engine.abort('r');
    resolve(fixedText([0]));
    await new Promise(setImmediate);
    expect(driver.engine.idle).toBe(true);
    expect(driver.eventsOf('r')).toEqual([]);
  });
});
