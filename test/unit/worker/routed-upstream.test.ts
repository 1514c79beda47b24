import { describe, expect, test } from 'vitest';
import { ApiError } from '../../../shared/errors.ts';
import type { GenerationRequest } from '../../../shared/generation.ts';
import { type Candidate, RoutedUpstream } from '../../../worker/upstreams/routed-upstream.ts';
import type { TokenizerService, Upstream, UpstreamContext } from '../../../worker/upstreams/upstream.ts';
import { UpstreamHealth } from '../../../worker/upstreams/upstream-health.ts';

const context = { signal: new AbortController().signal, after: () => () => {} } as Partial<UpstreamContext>;

test.each(['unsupported_parameter', 'unsupported_endpoint'] as const)(
  'a server that fails is not well again because of a request that was refused with %s before it was asked',
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

describe('the tokenizer', () => {
  const signal = new AbortController().signal;
  const asked = { model: 'm', prompt: 'x', addSpecialTokens: true };

  /** Routed to `first`, then to one that is well; tells how often the first was asked. */
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
    return { health, counts, ask: () => routed.tokenizer!.tokenize(asked, signal) };
  }

  test('of an origin that is away is another one’s, and its failures count', async () => {
    const { health, ask } = world(() => Promise.reject(new ApiError('upstream_error', 'Away.')));
    for (let count = 0; count < 5; count += 1) expect((await ask()).tokens).toEqual([7]);
    expect(health.order(['first', 'second'])).toEqual(['second', 'first']);
  });

  test('is not asked elsewhere for what the caller did wrong', async () => {
    const { ask } = world(() => Promise.reject(new ApiError('invalid_value', 'Wrong.')));
    await expect(ask()).rejects.toThrow('Wrong.');
  });

  test('that answers does not say that its origin generates', async () => {
    const { health, counts, ask } = world(async () => ({ tokens: [1], tokenStrings: ['x'] }));
    for (let count = 0; count < 4; count += 1) health.begin('first')('failure');
    expect((await ask()).tokens).toEqual([1]);
    expect(counts.first).toBe(1);
    health.begin('first')('failure');
    expect(health.order(['first', 'second'])).toEqual(['second', 'first']);
  });
});
