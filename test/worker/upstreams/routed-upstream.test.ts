import { describe, expect, test } from 'vitest';
import { ApiError, type ErrorCode } from '../../../shared/errors.ts';
import type { GenerationEvent, GenerationRequest } from '../../../shared/generation.ts';
import { type Candidate, RoutedUpstream } from '../../../worker/upstreams/routed-upstream.ts';
import type {
  EventBatches,
  TokenizerService,
  Upstream,
  UpstreamContext,
} from '../../../worker/upstreams/upstream.ts';
import { UpstreamHealth } from '../../../worker/upstreams/upstream-health.ts';
import { ACCEPTED, DONE, TOKEN, USAGE } from '../generation/short-generation.ts';

const context = { signal: new AbortController().signal, after: () => () => {} } as Partial<UpstreamContext>;

test.each(['unsupported_parameter', 'unsupported_endpoint'] as const)(
  'a request rejected with %s before it was sent does not reset the failures of a server',
  async (code) => {
    const health = new UpstreamHealth(() => 0);
    const generate: Upstream['generate'] = () => Promise.reject(new ApiError(code, 'Not here.'));
    const upstream = { name: 'failing', generate } as Partial<Upstream> as Upstream;
    const routed = new RoutedUpstream(
      [{ upstream, timeouts: { firstEventMs: 1, idleMs: 1 } }],
      health,
      () => 0,
    );
    for (let count = 0; count < 5; count += 1) health.begin('failing')('failure');
    await expect(routed.generate({} as GenerationRequest, context as UpstreamContext)).rejects.toThrow(
      'Not here.',
    );
    expect(health.order(['failing', 'other'])).toEqual(['other', 'failing']);
  },
);

describe('a request whose upstream fails', () => {
  /** Sends a request to three upstreams that all fail with `code`. Returns the called ones and health. */
  async function failed(code: ErrorCode, signal = context.signal!, before = () => {}) {
    const health = new UpstreamHealth(() => 0);
    for (let count = 0; count < 4; count += 1) health.begin('one')('failure');
    const asked: string[] = [];
    const candidates = ['one', 'two', 'three'].map((name): Candidate => {
      const generate: Upstream['generate'] = () => {
        asked.push(name);
        before();
        return Promise.reject(new ApiError(code, name));
      };
      const upstream = { name, generate } as Partial<Upstream> as Upstream;
      return { upstream, timeouts: { firstEventMs: 1, idleMs: 1 } };
    });
    const routed = new RoutedUpstream(candidates, health, () => 0);
    const outcome = routed.generate({} as GenerationRequest, { ...context, signal } as UpstreamContext);
    await expect(outcome).rejects.toMatchObject({ code });
    return { asked, health, name: routed.name };
  }

  test('is tried at exactly one other upstream, which then has its usage account', async () => {
    const { asked, name } = await failed('upstream_error');
    expect([asked, name]).toEqual([['one', 'two'], 'two']);
  });

  test('is not tried elsewhere once its client has disconnected', async () => {
    const client = new AbortController();
    const { asked } = await failed('upstream_error', client.signal, () => client.abort());
    expect(asked).toEqual(['one']);
  });

  test.each(['server_is_overloaded', 'model_loading', 'model_unavailable'] as const)(
    'with %s counts neither as success nor as failure',
    async (code) => {
      const { health } = await failed(code);
      expect(health.order(['one', 'other'])).toEqual(['one', 'other']);
      health.begin('one')('failure');
      expect(health.order(['one', 'other'])).toEqual(['other', 'one']);
    },
  );
});

describe('a generation', () => {
  const error = (code: string): GenerationEvent => ({
    type: 'error',
    code,
    message: 'Broken.',
    param: null,
    retryable: false,
    usage: USAGE,
  });

  /** An upstream `one` that answers each generation with these batches, and its health. */
  function world(batches: readonly (readonly GenerationEvent[])[], thrown?: Error) {
    const clock = { now: 0 };
    const health = new UpstreamHealth(() => clock.now);
    async function* stream() {
      yield* batches;
      if (thrown) throw thrown;
    }
    const sent: AbortSignal[] = [];
    const generate: Upstream['generate'] = async (_, { signal }) => {
      sent.push(signal);
      return stream();
    };
    const upstream = { name: 'one', generate } as Partial<Upstream> as Upstream;
    const timeouts = { firstEventMs: 1000, idleMs: 1000 };
    const routed = new RoutedUpstream([{ upstream, timeouts }], health, () => clock.now);
    const ask = (signal = context.signal!) =>
      routed.generate(
        {} as GenerationRequest,
        { ...context, signal } as UpstreamContext,
      ) as Promise<EventBatches>;
    // The relay stops reading after an error.
    const generation = async (): Promise<void> => {
      for await (const batch of await ask()) if (batch.some(({ type }) => type === 'error')) return;
    };
    return { clock, health, sent, ask, generation };
  }

  test('that completes resets earlier failures and no longer counts as running', async () => {
    const { health, generation } = world([[ACCEPTED], [TOKEN, DONE]]);
    for (let count = 0; count < 4; count += 1) health.begin('one')('failure');
    for (let count = 0; count < 10; count += 1) await generation();
    health.begin('one')('failure');
    expect(health.order(['one', 'other'])).toEqual(['one', 'other']);
  });

  test.each([
    ['ends with an error event', [[ACCEPTED], [TOKEN, error('upstream_error')]], undefined],
    ['begins with an error event', [[ACCEPTED, error('upstream_timeout')]], undefined],
    ['ends too early', [[ACCEPTED], [TOKEN]], undefined],
    ['ends before it has begun', [], undefined],
    ['breaks', [[ACCEPTED], [TOKEN]], new ApiError('upstream_error', 'Broken.')],
  ])('whose stream %s counts as a failure and no longer as running', async (_, batches, thrown) => {
    const { clock, health, generation } = world(batches, thrown);
    for (let count = 0; count < 5; count += 1) await generation().catch(() => {});
    expect(health.order(['one', 'other'])).toEqual(['other', 'one']);
    clock.now += 60_000;
    expect(health.order(['one', 'other'])).toEqual(['one', 'other']);
  });

  test('whose client disconnects is aborted and says nothing about its upstream', async () => {
    const { health, sent, ask } = world([[ACCEPTED], [TOKEN], [DONE]]);
    for (let count = 0; count < 10; count += 1) {
      const client = new AbortController();
      await ask(client.signal);
      expect(sent.at(-1)?.aborted).toBe(false);
      client.abort();
      expect(sent.at(-1)?.aborted).toBe(true);
    }
    expect(health.order(['one', 'other'])).toEqual(['one', 'other']);
  });

  test('whose client has disconnected before it started is also aborted', async () => {
    const { health, sent, ask } = world([[ACCEPTED], [DONE]]);
    for (let count = 0; count < 10; count += 1) await ask(AbortSignal.abort());
    expect(sent.every(({ aborted }) => aborted)).toBe(true);
    expect(health.order(['one', 'other'])).toEqual(['one', 'other']);
  });
});

describe('the tokenizer', () => {
  const signal = new AbortController().signal;
  const asked = {
    model: 'm',
    prompt: 'x',
    addSpecialTokens: true,
    tenantId: 'tenant',
    weight: 1,
    parseSpecial: true,
    withStrings: false,
    withBytes: false,
  };

  /** Routed to `first`, then to a working one; counts the requests to the first. */
  function world(tokenize: TokenizerService['tokenize']) {
    const health = new UpstreamHealth(() => 0);
    const counts = { first: 0 };
    const candidate = (name: string, tokenizer: Partial<TokenizerService> | null): Candidate => ({
      upstream: { name, tokenizer } as Partial<Upstream> as Upstream,
      timeouts: { firstEventMs: 1, idleMs: 1 },
    });
    const candidates = [
      candidate('foreign', null),
      candidate('first', {
        tokenize: (request, until) => {
          counts.first += 1;
          return tokenize(request, until);
        },
      }),
      candidate('second', { tokenize: async () => ({ tokens: [7], tokenStrings: ['x'] }) }),
    ];
    const routed = new RoutedUpstream(candidates, health, () => 0);
    return { health, counts, ask: (until = signal) => routed.tokenizer!.tokenize(asked, until) };
  }

  test('falls back to another origin, and the failures count', async () => {
    const { health, ask } = world(() => Promise.reject(new ApiError('upstream_error', 'Away.')));
    for (let count = 0; count < 5; count += 1) expect((await ask()).tokens).toEqual([7]);
    expect(health.order(['first', 'second'])).toEqual(['second', 'first']);
  });

  test('does not count a disconnected client as a failure', async () => {
    const client = new AbortController();
    const { health, ask } = world(() => {
      client.abort();
      return Promise.reject(new ApiError('upstream_error', 'Cut.'));
    });
    for (let count = 0; count < 4; count += 1) health.begin('first')('failure');
    await expect(ask(client.signal)).rejects.toThrow('Cut.');
    expect(health.order(['first', 'second'])).toEqual(['first', 'second']);
  });

  test('is not retried elsewhere for invalid requests', async () => {
    const { ask } = world(() => Promise.reject(new ApiError('invalid_value', 'Wrong.')));
    await expect(ask()).rejects.toThrow('Wrong.');
  });

  test('does not reset the failures of its origin when it answers', async () => {
    const { health, counts, ask } = world(async () => ({ tokens: [1], tokenStrings: ['x'] }));
    for (let count = 0; count < 4; count += 1) health.begin('first')('failure');
    for (let count = 0; count < 10; count += 1) expect((await ask()).tokens).toEqual([1]);
    expect(counts.first).toBe(10);
    // Nor does it count as running.
    expect(health.order(['first', 'second'])).toEqual(['first', 'second']);
    health.begin('first')('failure');
    expect(health.order(['first', 'second'])).toEqual(['second', 'first']);
  });
});
