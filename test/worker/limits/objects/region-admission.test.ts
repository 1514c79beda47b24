import { beforeEach, describe, expect, test } from 'vitest';
import { UNLIMITED } from '../../../../shared/tenant.ts';
import type { ExchangeAnswer } from '../../../../worker/limits/objects/exchange.ts';
import { RegionBook } from '../../../../worker/limits/objects/region-admission.ts';
import type { Ending, ReservationRequest } from '../../../../worker/limits/protocol.ts';
import { SLICE_MS } from '../../../../worker/limits/quota/slice.ts';

const NOW = Date.UTC(2026, 0, 31, 12);
const USAGE = { promptTokens: 1, cachedTokens: 0, completionTokens: 1 };
const PROGRESS = { leaseMs: 30_000, usage: USAGE, upstream: 'origin' };

const request = (requestId: string): ReservationRequest => ({
  ...{ requestId, tenantId: 'acme', keyId: 'key', model: 'tiny', tokens: 10, leaseMs: 30_000 },
  ...{ tenantLimits: UNLIMITED, keyLimits: UNLIMITED },
});

const ending = (requestId: string): Ending => ({
  requestId,
  settlement: {
    ...{ status: 'completed', usage: USAGE, errorCode: null, finishReasons: [] },
    ...{ upstream: null, latencyMs: 1, firstTokenMs: null },
  },
});

/** Home's answer that grants the key so many requests. */
const granting = (number: number, requests: number): ExchangeAnswer => ({
  cursor: 0,
  reservations: [],
  slices: [
    {
      ...{ keyId: 'key', number, lifeMs: SLICE_MS, standing: { requests: null, tokens: null } },
      amounts: { requests, tokens: null, slots: null },
    },
  ],
});

let book: RegionBook;
beforeEach(() => {
  book = new RegionBook();
});

/** So many of ten requests are admitted without home. */
const admitted = (): number =>
  Array.from({ length: 10 }, (_, index) => book.admit(request(`r${index}`), NOW)).filter(
    (one) => one !== null,
  ).length;

describe('what a region decides without asking', () => {
  test('the same request asked twice is paid for once, and told once', () => {
    book.absorb(granting(1, 2), NOW);
    expect(book.admit(request('a'), NOW)?.entry).toMatchObject({ kind: 'admitted', slice: 1 });
    expect(book.admit(request('a'), NOW)).toMatchObject({ reservation: { admitted: true }, entry: null });
    expect(book.admit(request('b'), NOW)).not.toBeNull();
  });

  test('after a recall nothing is admitted, not by a slice that was already on its way either', () => {
    book.absorb(granting(1, 5), NOW);
    book.compose([], NOW);
    book.recall();
    expect(admitted()).toBe(0);
    // Home believes it held: it hears soon that it is not.
    expect(book.absorb(granting(2, 5), NOW)).toBe(true);
    expect(book.compose([], NOW).holding).toEqual([]);
    expect(admitted()).toBe(0);
  });

  test('after a recall slices count again that were asked for later', () => {
    book.recall();
    book.compose([], NOW);
    book.absorb(granting(1, 5), NOW);
    expect(admitted()).toBe(5);
  });

  test('a slice that takes the place of another is a reason to tell home soon, a first one is none', () => {
    expect(book.absorb(granting(1, 5), NOW)).toBe(false);
    expect(book.absorb(granting(2, 5), NOW)).toBe(true);
    expect(book.compose([], NOW).holding).toEqual([2]);
  });

  test('what is left after a request is shown together with what home has left', () => {
    const [slice] = granting(1, 5).slices;
    const standing = { requests: { limit: 50, remaining: 40, resetMs: 60_000 }, tokens: null };
    book.absorb({ cursor: 0, reservations: [], slices: [{ ...slice!, standing }] }, NOW);
    expect(book.admit(request('a'), NOW)?.reservation.headers).toMatchObject({
      'x-ratelimit-remaining-requests': '44',
    });
  });
});

describe('what a region tells home', () => {
  test('a sign of life is told once: a request whose Worker is gone stays alive no longer than its lease', () => {
    book.renew('a', PROGRESS);
    expect(book.compose([], NOW).progress).toEqual([{ requestId: 'a', progress: PROGRESS }]);
    expect(book.compose([], NOW).progress).toEqual([]);
  });

  test('a sign of life is not told any more once its request has ended', () => {
    book.renew('a', PROGRESS);
    book.settle(ending('a'), NOW);
    expect(book.compose([], NOW).progress).toEqual([]);
  });

  test('a new slice is asked for as soon as less than half is left, before there is none', () => {
    const wished = () => book.compose([], NOW).wishes.map(({ keyId }) => keyId);
    book.absorb(granting(1, 4), NOW);
    for (const id of ['a', 'b']) book.admit(request(id), NOW);
    expect(wished()).toEqual([]);
    book.admit(request('c'), NOW);
    expect(wished()).toEqual(['key']);
  });

  test('a new slice is asked for when less than half of its slots or of its time is left, too', () => {
    const [slice] = granting(1, 4).slices;
    const amounts = { requests: null, tokens: null, slots: 4 };
    book.absorb({ cursor: 0, reservations: [], slices: [{ ...slice!, amounts }] }, NOW);
    const wishesAt = (now: number, id: string): number => {
      book.admit(request(id), now);
      return book.compose([], now).wishes.length;
    };
    expect(['a', 'b', 'c'].map((id) => wishesAt(NOW, id))).toEqual([0, 0, 1]);
    book.absorb(granting(2, 40), NOW);
    expect([wishesAt(NOW + SLICE_MS / 2, 'd'), wishesAt(NOW + SLICE_MS / 2 + 1, 'e')]).toEqual([0, 1]);
  });

  test('it is due to tell when the first of its slices is over', () => {
    const [slice] = granting(1, 4).slices;
    const slices = [slice!, { ...slice!, keyId: 'other', number: 2, lifeMs: SLICE_MS / 2 }];
    book.absorb({ cursor: 0, reservations: [], slices }, NOW);
    expect(book.nextExpiry()).toBe(NOW + SLICE_MS / 2);
    expect(book.compose([], NOW + SLICE_MS / 2).holding).toEqual([1]);
  });

  test('the slot of a request goes to no slice but the one that paid for it', () => {
    book.absorb(granting(1, 4), NOW);
    for (const id of ['a', 'b']) book.admit(request(id), NOW);
    expect(book.settle(ending('a'), NOW)).toMatchObject({ refund: { slice: 1, tokens: 8 } });
    book.absorb(granting(2, 4), NOW);
    expect(book.settle(ending('b'), NOW)).toMatchObject({ refund: null });
  });
});
