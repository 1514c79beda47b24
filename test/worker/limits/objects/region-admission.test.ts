import { beforeEach, describe, expect, test } from 'vitest';
import { UNLIMITED } from '../../../../shared/tenant.ts';
import type {
  RegionSyncResult,
  ReservationRequest,
  SettlementRequest,
} from '../../../../worker/env/limiter-protocol.ts';
import { RegionAdmission } from '../../../../worker/limits/objects/region-admission.ts';
import { SLICE_MS } from '../../../../worker/limits/quota/slice.ts';

const NOW = Date.UTC(2026, 0, 31, 12);
const USAGE = { promptTokens: 1, cachedTokens: 0, completionTokens: 1 };
const RENEWAL = { ttlMs: 30_000, usage: USAGE, upstream: 'origin' };

const request = (requestId: string): ReservationRequest => ({
  ...{ requestId, tenantId: 'acme', keyId: 'key', model: 'tiny', tokens: 10, ttlMs: 30_000 },
  ...{ tenantLimits: UNLIMITED, keyLimits: UNLIMITED },
});

const settlement = (requestId: string): SettlementRequest => ({
  requestId,
  settlement: {
    ...{ status: 'completed', usage: USAGE, errorCode: null, finishReasons: [] },
    ...{ upstream: null, latencyMs: 1, firstTokenMs: null },
  },
});

/** Returns a sync result that grants the key this number of requests. */
const granting = (number: number, requests: number): RegionSyncResult => ({
  cursor: 0,
  reservations: [],
  slices: [
    {
      ...{ keyId: 'key', number, lifeMs: SLICE_MS, status: { requests: null, tokens: null } },
      amounts: { requests, tokens: null, slots: null },
    },
  ],
});

let admission: RegionAdmission;
beforeEach(() => {
  admission = new RegionAdmission();
});

/** Returns how many of ten requests the region admits. */
const admitted = (): number =>
  Array.from({ length: 10 }, (_, index) => admission.admit(request(`r${index}`), NOW)).filter(
    (one) => one !== null,
  ).length;

describe('admission from slices', () => {
  test('charges and reports a repeated request once', () => {
    admission.takeSlices(granting(1, 2), NOW);
    expect(admission.admit(request('a'), NOW)?.decision).toMatchObject({ kind: 'admitted', slice: 1 });
    expect(admission.admit(request('a'), NOW)).toMatchObject({
      result: { admitted: true },
      decision: null,
    });
    expect(admission.admit(request('b'), NOW)).not.toBeNull();
  });

  test('admits nothing after a recall, even with a slice that was already under way', () => {
    admission.takeSlices(granting(1, 5), NOW);
    admission.composeSync([], NOW);
    admission.recall();
    expect(admitted()).toBe(0);
    // Home counts the slice as held, so a sync must follow soon.
    expect(admission.takeSlices(granting(2, 5), NOW)).toBe(true);
    expect(admission.composeSync([], NOW).heldSlices).toEqual([]);
    expect(admitted()).toBe(0);
  });

  test('uses slices that were requested after a recall', () => {
    admission.recall();
    admission.composeSync([], NOW);
    admission.takeSlices(granting(1, 5), NOW);
    expect(admitted()).toBe(5);
  });

  test('syncs soon after a slice replaces another, but not after a first slice', () => {
    expect(admission.takeSlices(granting(1, 5), NOW)).toBe(false);
    expect(admission.takeSlices(granting(2, 5), NOW)).toBe(true);
    expect(admission.composeSync([], NOW).heldSlices).toEqual([2]);
  });

  test('adds home’s remaining requests to those of the slice', () => {
    const [slice] = granting(1, 5).slices;
    const status = { requests: { limit: 50, remaining: 40, resetMs: 60_000 }, tokens: null };
    admission.takeSlices({ cursor: 0, reservations: [], slices: [{ ...slice!, status }] }, NOW);
    expect(admission.admit(request('a'), NOW)?.result.headers).toMatchObject({
      'x-ratelimit-remaining-requests': '44',
    });
  });
});

describe('composing a sync', () => {
  test('sends a renewal once, so that a request without a Worker expires', () => {
    admission.renew('a', RENEWAL);
    expect(admission.composeSync([], NOW).renewals).toEqual([{ requestId: 'a', renewal: RENEWAL }]);
    expect(admission.composeSync([], NOW).renewals).toEqual([]);
  });

  test('sends no renewal for a settled request', () => {
    admission.renew('a', RENEWAL);
    admission.settle(settlement('a'), NOW);
    expect(admission.composeSync([], NOW).renewals).toEqual([]);
  });

  test('requests a new slice when less than half of the requests is left', () => {
    const wished = () => admission.composeSync([], NOW).sliceRequests.map(({ keyId }) => keyId);
    admission.takeSlices(granting(1, 4), NOW);
    for (const id of ['a', 'b']) admission.admit(request(id), NOW);
    expect(wished()).toEqual([]);
    admission.admit(request('c'), NOW);
    expect(wished()).toEqual(['key']);
  });

  test('requests a new slice when less than half of the slots or of the lifetime is left', () => {
    const [slice] = granting(1, 4).slices;
    const amounts = { requests: null, tokens: null, slots: 4 };
    admission.takeSlices({ cursor: 0, reservations: [], slices: [{ ...slice!, amounts }] }, NOW);
    const wishesAt = (now: number, id: string): number => {
      admission.admit(request(id), now);
      return admission.composeSync([], now).sliceRequests.length;
    };
    expect(['a', 'b', 'c'].map((id) => wishesAt(NOW, id))).toEqual([0, 0, 1]);
    admission.takeSlices(granting(2, 40), NOW);
    expect([wishesAt(NOW + SLICE_MS / 2, 'd'), wishesAt(NOW + SLICE_MS / 2 + 1, 'e')]).toEqual([0, 1]);
  });

  test('is due when the first slice expires', () => {
    const [slice] = granting(1, 4).slices;
    const slices = [slice!, { ...slice!, keyId: 'other', number: 2, lifeMs: SLICE_MS / 2 }];
    admission.takeSlices({ cursor: 0, reservations: [], slices }, NOW);
    expect(admission.nextExpiry()).toBe(NOW + SLICE_MS / 2);
    expect(admission.composeSync([], NOW + SLICE_MS / 2).heldSlices).toEqual([1]);
  });

  test('refunds a request only to the slice that paid for it', () => {
    admission.takeSlices(granting(1, 4), NOW);
    for (const id of ['a', 'b']) admission.admit(request(id), NOW);
    expect(admission.settle(settlement('a'), NOW)).toMatchObject({ refund: { slice: 1, tokens: 8 } });
    admission.takeSlices(granting(2, 4), NOW);
    expect(admission.settle(settlement('b'), NOW)).toMatchObject({ refund: null });
  });
});
