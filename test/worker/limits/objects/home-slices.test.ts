import { expect, test } from 'vitest';
import { UNLIMITED } from '../../../../shared/tenant.ts';
import type { LimiterCall } from '../../../../worker/env/limiter-protocol.ts';
import { type HomeCallbacks, HomeSlices } from '../../../../worker/limits/objects/home-slices.ts';
import { subjectsOf } from '../../../../worker/limits/objects/open-requests.ts';
import { SLICE_GRACE_MS, SLICE_MS } from '../../../../worker/limits/quota/slice.ts';
import { emptyQuota } from '../../../../worker/limits/quota/state.ts';

const START = Date.UTC(2026, 0, 15, 12);

test('asks upstreams that do not answer about a silent isolate again after ten seconds, not with every alarm', () => {
  const home = {
    ...{ subjectsOf, isBlocked: () => false, touch: () => {}, saveIsolate: () => {} },
  } as unknown as HomeCallbacks;
  const slices = new HomeSlices(emptyQuota(), new Map(), home);
  const holder = {
    ...{ tenantId: 'tenant', keyId: 'key', tokens: 1, money: 0, ttlMs: 30_000 },
    ...{ tenantLimits: { ...UNLIMITED, requestsPerMinute: 80 }, keyLimits: UNLIMITED },
  };
  const call: LimiterCall = {
    ...{ isolate: 'i', number: 1, first: 1, decisions: [], renewals: [], reservation: null },
    sliceRequests: [holder],
  };
  expect(slices.exchange(call, START).slices).toHaveLength(1);
  const end = START + SLICE_MS + SLICE_GRACE_MS;
  slices.endDue(end);
  expect(slices.silent(end)).toEqual(['i']);
  slices.giveUp('i', null, end);
  expect([slices.silent(end + 500), slices.nextEnd()]).toEqual([[], end + 10_000]);
  expect(slices.silent(end + 10_000)).toEqual(['i']);
});
