import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ApiError } from '../../../shared/errors.ts';
import type { GenerationEvent, Usage } from '../../../shared/generation.ts';
import type { ParsedCompletion } from '../../../worker/dialects/parsed-completion.ts';
import { Generation, type GenerationOptions } from '../../../worker/generation/generation.ts';
import type { Hold } from '../../../worker/limits/hold.ts';
import type { Outcome } from '../../../worker/limits/outcome.ts';
import { runs } from '../../support/random.ts';

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

const parsed = {
  generation: { constraint: null, prompts: ['a', 'b'], choices: 1 },
  constraintField: null,
  promptIsListed: false,
} as Partial<ParsedCompletion> as ParsedCompletion;

interface Run {
  /** Of the upstream; an error follows the batches. */
  readonly thrown?: Error;
  readonly onPromptTokens?: GenerationOptions['onPromptTokens'];
  readonly client?: AbortController;
  readonly spend?: Hold['spend'];
  /** Refuses the request, or answers later. */
  readonly send?: (signal: AbortSignal, onAccepted: (promptTokens: number) => void) => Promise<void>;
}

/** Runs a generation over these batches and records its settlements. */
function runOver(batches: readonly (readonly GenerationEvent[])[], run: Run = {}) {
  const { thrown, onPromptTokens = async () => {}, client = new AbortController(), send } = run;
  const { spend = () => null } = run;
  const settled: Outcome[] = [];
  const watched: Parameters<Hold['watch']>[0][] = [];
  const source = { readToEnd: false, signal: new AbortController().signal };
  const timers: (() => void)[] = [];
  async function* stream() {
    yield* batches;
    if (thrown) throw thrown;
    source.readToEnd = true;
  }
  const generation = new Generation({
    parsed,
    envelope: { id: 'cmpl-1', created: 0, model: 'm', fingerprint: 'fp' },
    hold: {
      watch: (progress) => void watched.push(progress),
      spend,
      end: (outcome) => void settled.push(outcome),
      block: async () => null,
    },
    upstream: { name: 'fake' },
    send: async (signal, onAccepted) => {
      source.signal = signal;
      await send?.(signal, onAccepted);
      return stream();
    },
    onPromptTokens,
    client: client.signal,
    timeoutMs: 1000,
    after: (_, then) => {
      timers.push(then);
      return () => {
        const at = timers.indexOf(then);
        if (at >= 0) timers.splice(at, 1);
      };
    },
    now: () => 42,
    waitUntil: () => {},
  });
  generation.first.catch(() => {});
  const deadline = () => {
    for (const then of timers.splice(0)) then();
  };
  return { generation, settled, watched, source, client, timers, deadline };
}

/** Reads all events; returns the error at the end, if there is one. */
async function drain(generation: Generation): Promise<{ events: GenerationEvent[]; error: ApiError | null }> {
  const events: GenerationEvent[] = [];
  try {
    events.push(...(await generation.first));
    while (events.at(-1)?.type !== 'done') events.push(...(await generation.next()));
    return { events, error: null };
  } catch (thrown) {
    if (thrown instanceof ApiError) return { events, error: thrown };
    throw thrown;
  }
}

/** An account that has `first` tokens reserved, and as many more as `parts` say, one part per call. */
function accountOf(first: number, parts: number[], error: ApiError | null = null): Hold['spend'] {
  let tokens = first;
  const more = async (needed: number) => {
    while (needed > tokens) {
      const part = parts.shift();
      if (part === undefined && error) throw error;
      if (part === undefined) return 'tokens_per_day';
      tokens += part;
    }
    return null;
  };
  return (needed) => (needed <= tokens ? null : more(needed));
}

describe('a generation whose account has few tokens left', () => {
  // Of two prompts with 7 tokens, only the first has begun.
  const batches = [[accepted, started], [token(0, 1), token(0, 2), token(0, 5), token(0, 6)], [done]];

  test('ends by its length with the last event that fits, and bills no token more', async () => {
    const { generation, settled, source } = runOver(batches, { spend: accountOf(8, [1]) });
    const { events } = await drain(generation);
    const usage = { promptTokens: 3, cachedTokens: 2, completionTokens: 2, limitReached: 'tokens_per_day' };
    expect(events.slice(2)).toMatchObject([
      { type: 'token', completionTokens: 1 },
      { type: 'token', completionTokens: 2 },
      { type: 'finish', choice: 0, reason: 'length', completionTokens: 2 },
      { type: 'finish', choice: 1, reason: 'length', completionTokens: 0 },
      { type: 'done', usage },
    ]);
    expect(settled).toMatchObject([{ status: 'completed', usage, inquire: false }]);
    expect(source.signal.aborted).toBe(true);
  });

  test('goes on for as long as it gets more', async () => {
    const { generation } = runOver(batches, { spend: accountOf(8, [1, 1, 1, 1, 1]) });
    const { events } = await drain(generation);
    expect(events.at(-1)).toEqual(done);
  });

  test('fails after what was covered if its limits cannot be checked', async () => {
    const unchecked = new ApiError('server_is_overloaded', 'Unknown.');
    const { generation, settled } = runOver(batches, { spend: accountOf(8, [], unchecked) });
    const { events, error } = await drain(generation);
    expect(events.at(-1)).toMatchObject({ type: 'token', completionTokens: 1 });
    expect(error?.code).toBe('server_is_overloaded');
    expect(settled).toMatchObject([{ status: 'failed', usage: { completionTokens: 1 } }]);
  });

  test('fails at once if it is stopped while it waits for more, and relays only what it bills', async () => {
    const stopped = Promise.withResolvers<null>();
    const spend: Hold['spend'] = (tokens) => (tokens <= 8 ? null : stopped.promise);
    const { generation, settled, deadline } = runOver(batches, { spend });
    const ending = drain(generation);
    await new Promise(setImmediate);
    deadline();
    stopped.resolve(null);
    const { events, error } = await ending;
    expect(events.at(-1)).toMatchObject({ type: 'token', completionTokens: 1 });
    expect(error?.code).toBe('upstream_timeout');
    expect(settled).toMatchObject([{ status: 'failed', usage: { completionTokens: 1 } }]);
  });
});

describe('how a generation ends', () => {
  test('`done` completes it with the upstream’s usage', async () => {
    const finish: GenerationEvent = {
      type: 'finish',
      choice: 0,
      reason: 'stop',
      stopReason: null,
      completionTokens: 2,
    };
    const { generation, settled, source } = runOver([[accepted, started], [token(0, 1)], [finish, done]]);
    expect((await drain(generation)).error).toBeNull();
    expect(settled).toHaveLength(1);
    expect(settled[0]).toMatchObject({
      status: 'completed',
      usage: USAGE,
      errorCode: null,
      finishReasons: ['stop'],
      upstream: 'fake',
      firstTokenAt: 42,
    });
    expect(source.signal.aborted).toBe(false);
  });

  test('an error event fails it after the events before; the counted usage is settled', async () => {
    const { generation, settled } = runOver([
      [accepted, started],
      [token(0, 2), token(1, 3), failure('upstream_timeout')],
    ]);
    const { events, error } = await drain(generation);
    expect(events.map(({ type }) => type)).toEqual(['accepted', 'started', 'token', 'token']);
    expect(error).toMatchObject({ code: 'upstream_timeout', status: 504, message: 'Broken.' });
    expect(settled).toMatchObject([
      {
        status: 'failed',
        errorCode: 'upstream_timeout',
        usage: { promptTokens: 3, cachedTokens: 2, completionTokens: 5 },
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
    const { generation, settled, source } = runOver([[], [accepted, started, token(0, 2), done]], {
      onPromptTokens: refuse,
    });
    expect(await drain(generation)).toEqual({ events: [], error: refusal });
    expect(counts).toEqual([[3, 4]]);
    expect(source.signal.aborted).toBe(true);
    const usage = { promptTokens: 0, cachedTokens: 0, completionTokens: 0 };
    expect(settled).toMatchObject([
      { status: 'failed', errorCode: 'tokens_limit_exceeded', usage, inquire: false },
    ]);
  });

  test('an error event with usage settles that usage; an unknown code becomes upstream_error', async () => {
    const usage = { promptTokens: 7, cachedTokens: 0, completionTokens: 9 };
    const { generation, settled } = runOver([[accepted, token(0, 1), failure('confetti', usage)]]);
    expect((await drain(generation)).error?.code).toBe('upstream_error');
    expect(settled[0]).toMatchObject({ usage, errorCode: 'upstream_error' });
  });

  test('an error event with less usage than was relayed settles what was relayed', async () => {
    const usage = { promptTokens: 7, cachedTokens: 0, completionTokens: 3 };
    const { generation, settled } = runOver([
      [accepted, started, token(0, 4), failure('upstream_error', usage)],
    ]);
    await drain(generation);
    expect(settled[0]).toMatchObject({
      usage: { promptTokens: 7, cachedTokens: 2, completionTokens: 4 },
    });
  });

  test('a disconnected client cancels it, stops the upstream and settles what was generated', async () => {
    const { generation, settled, source } = runOver([[accepted, started], [token(0, 4)], [token(0, 5)]]);
    await generation.first;
    await generation.next();
    generation.cancel();
    expect(source.signal.aborted).toBe(true);
    expect(settled).toMatchObject([{ status: 'cancelled', errorCode: null, usage: { completionTokens: 4 } }]);
  });

  test('after `done` a disconnect does not break the upstream’s connection, which is read to its end', async () => {
    const { generation, source } = runOver([[accepted, started], [done]]);
    await drain(generation);
    generation.cancel();
    await expect.poll(() => source.readToEnd).toBe(true);
    expect(source.signal.aborted).toBe(false);
  });

  test('while it runs, its hold can read its usage and upstream at any time', async () => {
    const { generation, watched } = runOver([[accepted, started], [token(0, 4)], [token(0, 5)]]);
    await generation.first;
    await generation.next();
    // The second prompt has not been begun.
    const usage = { promptTokens: 3, cachedTokens: 2, completionTokens: 4 };
    expect(watched).toMatchObject([{ tally: { usage }, upstream: { name: 'fake' } }]);
  });

  test('the error is that of the deadline, not the connection error that follows', async () => {
    const { generation, settled, source, deadline } = runOver([[accepted]], {
      thrown: new TypeError('network'),
    });
    await generation.first;
    deadline();
    expect(source.signal.aborted).toBe(true);
    // A client that has stopped reading does not delay the settlement.
    expect(settled).toMatchObject([{ status: 'failed', errorCode: 'upstream_timeout', inquire: true }]);
    await expect(generation.next()).rejects.toMatchObject({
      code: 'upstream_timeout',
      message: 'The completion did not finish in time.',
    });
  });
});

describe('a generation that ends before its first events', () => {
  const until = (signal: AbortSignal) =>
    new Promise<void>((_, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason));
    });

  test('settles without usage if its upstream refuses the request', async () => {
    const refusal = new ApiError('invalid_value', 'No.');
    const { generation, settled } = runOver([], { send: () => Promise.reject(refusal) });
    await expect(generation.first).rejects.toBe(refusal);
    expect(settled).toEqual([
      {
        status: 'failed',
        errorCode: 'invalid_value',
        finishReasons: [],
        upstream: 'fake',
        firstTokenAt: null,
        inquire: false,
        usage: { promptTokens: 0, cachedTokens: 0, completionTokens: 0 },
      },
    ]);
  });

  test('settles the accepted prompt and lets the limiter inquire if its client disconnects', async () => {
    const { generation, settled, client } = runOver([], {
      send: (signal, onAccepted) => {
        onAccepted(9);
        return until(signal);
      },
    });
    client.abort();
    await expect(generation.first).rejects.toThrow();
    expect(settled).toMatchObject([
      { status: 'cancelled', errorCode: null, inquire: true, usage: { promptTokens: 9 } },
    ]);
  });

  test('fails with the error of the deadline', async () => {
    const { generation, settled, deadline } = runOver([], { send: until });
    deadline();
    await expect(generation.first).rejects.toMatchObject({ code: 'upstream_timeout' });
    expect(settled).toMatchObject([{ status: 'failed', errorCode: 'upstream_timeout', inquire: false }]);
  });
});

/** Resolves after all promises that can settle without a timer. */
const microtasks = async (): Promise<void> => {
  for (let count = 0; count < 20; count += 1) await null;
};

test('any sequence of events, refusals, failures, disconnects and deadlines: one settlement, no clean end without `done`', async () => {
  const event = fc.oneof(
    { weight: 8, arbitrary: fc.tuple(fc.nat(3), fc.nat(9)).map(([choice, count]) => token(choice, count)) },
    { weight: 1, arbitrary: fc.constant(accepted) },
    { weight: 1, arbitrary: fc.constant(done) },
    { weight: 1, arbitrary: fc.constant(failure('upstream_error')) },
  );
  const plan = fc.record({
    given: fc.array(fc.array(event, { minLength: 1, maxLength: 4 }), { maxLength: 8 }),
    throws: fc.boolean(),
    /** Steps, of which the first ones are before the upstream answers. */
    answersAt: fc.nat(2),
    refuses: fc.boolean(),
    overLimit: fc.boolean(),
    leavesAt: fc.option(fc.nat(10)),
    deadlineAt: fc.option(fc.nat(10)),
    failsAt: fc.option(fc.nat(10)),
  });
  await fc.assert(
    fc.asyncProperty(plan, async ({ given, throws, answersAt, refuses, overLimit, ...at }) => {
      const answer = Promise.withResolvers<void>();
      const { generation, settled, source, client, timers, deadline } = runOver(given, {
        ...(throws && { thrown: new Error('reset') }),
        onPromptTokens: () =>
          overLimit ? Promise.reject(new ApiError('tokens_limit_exceeded', 'Over.')) : Promise.resolve(),
        send: (signal) => {
          signal.addEventListener('abort', () => answer.reject(signal.reason));
          return answer.promise;
        },
      });
      const events: GenerationEvent[] = [];
      let failed = false;
      let reading: Promise<readonly GenerationEvent[]> = generation.first;
      for (let step = 0; !failed && events.at(-1)?.type !== 'done'; step += 1) {
        if (step === at.leavesAt) client.abort();
        if (step === at.deadlineAt) deadline();
        if (step === at.failsAt) generation.fail(new ApiError('internal_error', 'Bug.'));
        if (step < answersAt) {
          await microtasks();
          continue;
        }
        if (step === answersAt)
          refuses ? answer.reject(new ApiError('invalid_value', 'No.')) : answer.resolve();
        await reading.then(
          (more) => events.push(...more),
          () => {
            failed = true;
          },
        );
        if (!failed && events.at(-1)?.type !== 'done') reading = generation.next();
        reading.catch(() => {});
      }
      expect(events.filter(({ type }) => type === 'error')).toEqual([]);
      expect(failed).toBe(events.at(-1)?.type !== 'done');
      expect(settled).toHaveLength(1);
      expect(timers).toEqual([]);
      const [{ status, errorCode }] = settled as [Outcome];
      expect(errorCode === null).toBe(status !== 'failed');
      if (status !== 'completed') expect(source.signal.aborted).toBe(true);
      if (status === 'completed') expect(failed).toBe(false);
    }),
    { numRuns: runs(500) },
  );
});
