import { beforeEach, describe, expect, test } from 'vitest';
import { UNLIMITED } from '../../../../shared/tenant.ts';
import { RegionAdmission } from '../../../../worker/limits/objects/region-admission.ts';
import type {
  RegionSyncResult,
  ReservationRequest,
  SettlementRequest,
} from '../../../../worker/limits/protocol.ts';
import { SLICE_MS } from '../../../../worker/limits/quota/slice.ts';

const NOW = Date.UTC(2026, 0, 31, 12);
const USAGE = { promptTokens: 1, cachedTokens: 0, completionTokens: 1 };
const RENEWAL = { leaseMs: 30_000, usage: USAGE, upstream: 'origin' };

const request = (requestId: string): ReservationRequest => ({
  ...{ requestId, tenantId: 'acme', keyId: 'key', model: 'tiny', tokens: 10, leaseMs: 30_000 },
  ...{ tenantLimits: UNLIMITED, keyLimits: UNLIMITED },
});

const settlement = (requestId: string): SettlementRequest => ({
  requestId,
  settlement: {
    ...{ status: 'completed', usage: USAGE, errorCode: null, finishReasons: [] },
    ...{ upstream: null, latencyMs: 1, firstTokenMs: null },
  },
});

/** Home's answer that grants the key so many requests. */
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

/** So many of ten requests are admitted without home. */
const admitted = (): number =>
  Array.from({ length: 10 }, (_, index) => admission.admit(request(`r${index}`), NOW)).filter(
    (one) => one !== null,
  ).length;

describe('what a region decides without asking', () => {
  test('the same request asked twice is paid for once, and told once', () => {
    admission.takeSlices(granting(1, 2), NOW);
    expect(admission.admit(request('a'), NOW)?.decision).toMatchObject({ kind: 'admitted', slice: 1 });
    expect(admission.admit(request('a'), NOW)).toMatchObject({
      reservation: { admitted: true },
      decision: null,
    });
    expect(admission.admit(request('b'), NOW)).not.toBeNull();
  });

  test('after a recall nothing is admitted, not by a slice that was already on its way either', () => {
    admission.takeSlices(granting(1, 5), NOW);
    admission.composeSync([], NOW);
    admission.recall();
    expect(admitted()).toBe(0);
    // Home believes it held: it hears soon that it is not.
    expect(admission.takeSlices(granting(2, 5), NOW)).toBe(true);
    expect(admission.composeSync([], NOW).heldSlices).toEqual([]);
    expect(admitted()).toBe(0);
  });

  test('after a recall slices count again that were asked for later', () => {
    admission.recall();
    admission.composeSync([], NOW);
    admission.takeSlices(granting(1, 5), NOW);
    expect(admitted()).toBe(5);
  });

  test('a slice that takes the place of another is a reason to tell home soon, a first one is none', () => {
    expect(admission.takeSlices(granting(1, 5), NOW)).toBe(false);
    expect(admission.takeSlices(granting(2, 5), NOW)).toBe(true);
    expect(admission.composeSync([], NOW).heldSlices).toEqual([2]);
  });

  test('what is left after a request is shown together with what home has left', () => {
    const [slice] = granting(1, 5).slices;
    const status = { requests: { limit: 50, remaining: 40, resetMs: 60_000 }, tokens: null };
    admission.takeSlices({ cursor: 0, reservations: [], slices: [{ ...slice!, status }] }, NOW);
    expect(admission.admit(request('a'), NOW)?.reservation.headers).toMatchObject({
      'x-ratelimit-remaining-requests': '44',
    });
  });
});

describe('what a region tells home', () => {
  test('a sign of life is told once: a request whose Worker is gone stays alive no longer than its lease', () => {
    admission.renew('a', RENEWAL);
    expect(admission.composeSync([], NOW).renewals).toEqual([{ requestId: 'a', renewal: RENEWAL }]);
    expect(admission.composeSync([], NOW).renewals).toEqual([]);
  });

  test('a sign of life is not told any more once its request has ended', () => {
    admission.renew('a', RENEWAL);
    admission.settle(settlement('a'), NOW);
    expect(admission.composeSync([], NOW).renewals).toEqual([]);
  });

  test('a new slice is asked for as soon as less than half is left, before there is none', () => {
    const wished = () => admission.composeSync([], NOW).sliceRequests.map(({ keyId }) => keyId);
    admission.takeSlices(granting(1, 4), NOW);
    for (const id of ['a', 'b']) admission.admit(request(id), NOW);
    expect(wished()).toEqual([]);
    admission.admit(request('c'), NOW);
    expect(wished()).toEqual(['key']);
  });

  test('a new slice is asked for when less than half of its slots or of its time is left, too', () => {
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

  test('it is due to tell when the first of its slices is over', () => {
    const [slice] = granting(1, 4).slices;
    const slices = [slice!, { ...slice!, keyId: 'other', number: 2, lifeMs: SLICE_MS / 2 }];
    admission.takeSlices({ cursor: 0, reservations: [], slices }, NOW);
    expect(admission.nextExpiry()).toBe(NOW + SLICE_MS / 2);
    expect(admission.composeSync([], NOW + SLICE_MS / 2).heldSlices).toEqual([1]);
  });

  test('the slot of a request goes to no slice but the one that paid for it', () => {
    admission.takeSlices(granting(1, 4), NOW);
    for (const id of ['a', 'b']) admission.admit(request(id), NOW);
    expect(admission.settle(settlement('a'), NOW)).toMatchObject({ refund: { slice: 1, tokens: 8 } });
    admission.takeSlices(granting(2, 4), NOW);
    expect(admission.settle(settlement('b'), NOW)).toMatchObject({ refund: null });
  });
});
