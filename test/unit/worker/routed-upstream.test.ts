import { expect, test } from 'vitest';
import { ApiError } from '../../../shared/errors.ts';
import type { GenerationRequest } from '../../../shared/generation.ts';
import { RoutedUpstream } from '../../../worker/upstreams/routed-upstream.ts';
import type { Upstream, UpstreamContext } from '../../../worker/upstreams/upstream.ts';
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
