import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ApiError } from '../../../shared/errors.ts';
import type { GenerationEvent, Usage } from '../../../shared/generation.ts';
import { type GenerationOptions, RunningGeneration } from '../../../worker/generation/running-generation.ts';
import type { Outcome, Reservation } from '../../../worker/limits/reservation.ts';

const TIMINGS = { queueMs: 0, promptMs: 0, generationMs: 0 };
const USAGE: Usage = { promptTokens: 7, cachedTokens: 3, completionTokens: 5 };

const accepted: GenerationEvent = { type: 'accepted', model: 'm', promptTokens: [3, 4] };
const started: GenerationEvent = { type: 'started', prompt: 0, cachedTokens: 2, queueMs: 0 };
const done: GenerationEvent = { type: 'done', usage: USAGE, timings: TIMINGS };
const token = (choice: number, completionTokens: number): GenerationEvent => ({
  type: 'token',
  choice,
  text: 'a',
  completionTokens,
});
const failure = (code: string, usage?: Usage): GenerationEvent => ({
  type: 'error',
  code,
  message: 'Broken.',
  param: null,
  retryable: false,
  ...(usage && { usage }),
});

/** Runs a generation over these batches and records its settlements. */
function runOver(
  batches: readonly (readonly GenerationEvent[])[],
  thrown?: Error,
  onPromptTokens: GenerationOptions['onPromptTokens'] = async () => {},
) {
  const settled: Outcome[] = [];
  const watched: Parameters<Reservation['watch']>[0][] = [];
  const abort = new AbortController();
  const source = { readToEnd: false };
  async function* stream() {
    yield* batches;
    if (thrown) throw thrown;
    source.readToEnd = true;
  }
  const run = new RunningGeneration(stream(), {
    reservation: {
      watch: (progress) => void watched.push(progress),
      settle: async (outcome) => void settled.push(outcome),
    },
    upstream: 'fake',
    abort,
    onPromptTokens,
    now: () => 42,
    waitUntil: () => {},
  });
  return { run, settled, watched, source, abort };
}

/** Reads all events; returns the error at the end, if there is one. */
async function drain(run: RunningGeneration): Promise<{ events: GenerationEvent[]; error: ApiError | null }> {
  const events: GenerationEvent[] = [];
  try {
    while (events.at(-1)?.type !== 'done') events.push(...(await run.next()));
    return { events, error: null };
  } catch (thrown) {
    if (thrown instanceof ApiError) return { events, error: thrown };
    throw thrown;
  }
}

describe('how a generation ends', () => {
  test('`done` completes it with the upstream’s usage', async () => {
    const finish: GenerationEvent = {
      type: 'finish',
      choice: 0,
      reason: 'stop',
      stopReason: null,
      completionTokens: 2,
    };
    const { run, settled, abort } = runOver([[accepted, started], [token(0, 1)], [finish, done]]);
    expect((await drain(run)).error).toBeNull();
    expect(settled).toHaveLength(1);
    expect(settled[0]).toMatchObject({
      status: 'completed',
      usage: USAGE,
      errorCode: null,
      finishReasons: ['stop'],
      upstream: 'fake',
      firstTokenAt: 42,
    });
    expect(abort.signal.aborted).toBe(false);
  });

  test('an error event fails it after the events before; the counted usage is settled', async () => {
    const { run, settled } = runOver([
      [accepted, started],
      [token(0, 2), token(1, 3), failure('upstream_timeout')],
    ]);
    const { events, error } = await drain(run);
    expect(events.map(({ type }) => type)).toEqual(['accepted', 'started', 'token', 'token']);
    expect(error).toMatchObject({ code: 'upstream_timeout', status: 504, message: 'Broken.' });
    expect(settled).toMatchObject([
      {
        status: 'failed',
        errorCode: 'upstream_timeout',
        usage: { promptTokens: 7, cachedTokens: 2, completionTokens: 5 },
      },
    ]);
  });

  test('a refused prompt stops the upstream and bills nothing, even if tokens came with the refused count', async () => {
    const counts: (readonly number[])[] = [];
    const refusal = new ApiError('tokens_limit_exceeded', 'Too many.');
    const refuse = async (promptTokens: readonly number[]) => {
      counts.push(promptTokens);
      throw refusal;
    };
    const { run, settled, abort } = runOver([[], [accepted, started, token(0, 2), done]], undefined, refuse);
    expect(await drain(run)).toEqual({ events: [], error: refusal });
    expect(counts).toEqual([[3, 4]]);
    expect(abort.signal.aborted).toBe(true);
    const usage = { promptTokens: 0, cachedTokens: 0, completionTokens: 0 };
    expect(settled).toMatchObject([
      { status: 'failed', errorCode: 'tokens_limit_exceeded', usage, inquire: false },
    ]);
  });

  test('an error event with usage settles that usage; an unknown code becomes upstream_error', async () => {
    const usage = { promptTokens: 7, cachedTokens: 0, completionTokens: 9 };
    const { run, settled } = runOver([[accepted, token(0, 1), failure('confetti', usage)]]);
    expect((await drain(run)).error?.code).toBe('upstream_error');
    expect(settled[0]).toMatchObject({ usage, errorCode: 'upstream_error' });
  });

  test('an error event with less usage than was relayed settles what was relayed', async () => {
    const usage = { promptTokens: 7, cachedTokens: 0, completionTokens: 3 };
    const { run, settled } = runOver([[accepted, started, token(0, 4), failure('upstream_error', usage)]]);
    await drain(run);
    expect(settled[0]).toMatchObject({
      usage: { promptTokens: 7, cachedTokens: 2, completionTokens: 4 },
    });
  });

  test('a disconnected client cancels it, stops the upstream and settles what was generated', async () => {
    const { run, settled, abort } = runOver([[accepted, started], [token(0, 4)], [token(0, 5)]]);
    await run.next();
    await run.next();
    run.cancel();
    expect(abort.signal.aborted).toBe(true);
    expect(settled).toMatchObject([{ status: 'cancelled', errorCode: null, usage: { completionTokens: 4 } }]);
  });

  test('after `done` a disconnect does not break the upstream’s connection, which is read to its end', async () => {
    const { run, source, abort } = runOver([[accepted, started], [done]]);
    await drain(run);
    run.cancel();
    await expect.poll(() => source.readToEnd).toBe(true);
    expect(abort.signal.aborted).toBe(false);
  });

  test('while it runs, the reservation can read its usage and upstream at any time', async () => {
    const { run, watched } = runOver([[accepted, started], [token(0, 4)], [token(0, 5)]]);
    await run.next();
    await run.next();
    const usage = { promptTokens: 7, cachedTokens: 2, completionTokens: 4 };
    expect(watched.map((progress) => progress())).toEqual([{ usage, upstream: 'fake' }]);
  });

  test('the error is the reason of the deadline, not the connection error that follows', async () => {
    const { run, abort } = runOver([[accepted]], new TypeError('network'));
    await run.next();
    abort.abort(new ApiError('upstream_timeout', 'Too late.'));
    expect((await drain(run)).error).toMatchObject({ code: 'upstream_timeout', message: 'Too late.' });
  });
});

test('any sequence of events, failures and disconnects: no clean end without `done`, exactly one settlement', async () => {
  const event = fc.oneof(
    { weight: 8, arbitrary: fc.tuple(fc.nat(3), fc.nat(9)).map(([choice, count]) => token(choice, count)) },
    { weight: 1, arbitrary: fc.constant(accepted) },
    { weight: 1, arbitrary: fc.constant(done) },
    { weight: 1, arbitrary: fc.constant(failure('upstream_error')) },
  );
  const batches = fc.array(fc.array(event, { minLength: 1, maxLength: 4 }), { maxLength: 8 });
  await fc.assert(
    fc.asyncProperty(batches, fc.boolean(), fc.option(fc.nat(8)), async (given, throws, leaves) => {
      const { run, settled, abort } = runOver(given, throws ? new Error('reset') : undefined);
      const events: GenerationEvent[] = [];
      let failed = false;
      for (let step = 0; !failed && events.at(-1)?.type !== 'done'; step += 1) {
        if (step === leaves) run.cancel();
        await run.next().then(
          (more) => events.push(...more),
          () => {
            failed = true;
          },
        );
      }
      const terminal = given.flat().find(({ type }) => type === 'done' || type === 'error');
      expect(failed).toBe(terminal?.type !== 'done');
      expect(events.filter(({ type }) => type === 'error')).toEqual([]);
      expect(settled).toHaveLength(1);
      if (settled[0]?.status !== 'completed') expect(abort.signal.aborted).toBe(true);
    }),
    { numRuns: 300 },
  );
});
