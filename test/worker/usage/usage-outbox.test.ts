import { expect, test } from 'vitest';
import type { NumberedRecord } from '../../../worker/usage/usage-ledger.ts';
import { flushOutbox } from '../../../worker/usage/usage-outbox.ts';
import { NO_USAGE, type UsageRecord } from '../../../worker/usage/usage-record.ts';

const recordOf = (request: number): UsageRecord => ({
  requestId: `r${request}`,
  tenantId: 'acme',
  keyId: 'key',
  model: 'tiny',
  upstream: null,
  usage: NO_USAGE,
  cost: 0,
  priceVersion: null,
  status: 'completed',
  errorCode: null,
  finishReasons: [],
  startedAt: 0,
  latencyMs: 1,
  firstTokenMs: null,
});

/** Returns this number of records. */
const records = (count: number) => Array.from({ length: count }, (_, index) => recordOf(index + 1));

/** An outbox with these records, and a ledger that accepts everything. */
function usageOf(waiting: readonly UsageRecord[], dataset?: AnalyticsEngineDataset) {
  let entries = waiting.map((record, index): NumberedRecord => ({ sequence: index + 1, record }));
  let cursor = 0;
  let counted = 0;
  const outbox = {
    outbox: (limit: number) => entries.slice(0, limit),
    dropOutboxTo: (sequence: number) => {
      entries = entries.filter((one) => one.sequence > sequence);
    },
  };
  const db = {
    prepare: () => ({
      bind: (...values: unknown[]) => ({ values, first: async () => ({ sequence: cursor }) }),
    }),
    batch: async (statements: { readonly values: readonly unknown[] }[]) => {
      cursor = statements.at(-1)!.values[1] as number;
      // Column `requests`.
      for (const { values } of statements.slice(0, -1)) counted += values[4] as number;
    },
  } as unknown as D1Database;
  return {
    flush: () => flushOutbox(outbox, db, dataset, false),
    written: () => cursor,
    counted: () => counted,
  };
}

test.each([0, 1, 499, 500, 501, 1_700])(
  'moves all of %i records exactly once with repeated calls',
  async (count) => {
    const { flush, written, counted } = usageOf(records(count));
    while (await flush());
    await flush();
    expect([written(), counted()]).toEqual([count, count]);
  },
);

test('needs no further call for a few records', async () => {
  const { flush } = usageOf(records(20));
  expect(await flush()).toBe(false);
});

/** Accepts this number of data points per alarm, as the platform does, then throws. */
function datasetTaking(most: number) {
  const taken: string[] = [];
  let sinceAlarm = 0;
  const writeDataPoint: AnalyticsEngineDataset['writeDataPoint'] = ({ blobs } = {}) => {
    sinceAlarm += 1;
    if (sinceAlarm > most) throw new Error('Analytics Engine write limit exceeded.');
    taken.push(String(blobs?.[0]));
  };
  const ring = (): void => {
    sinceAlarm = 0;
  };
  return { dataset: { writeDataPoint }, taken, ring };
}

test.each([
  ['takes 250 data points of an alarm', 250, 1_700],
  ['takes none', 0, 0],
])('fills the ledger although the dataset %s', async (_, most, points) => {
  const { dataset, taken, ring } = datasetTaking(most);
  const { flush, written } = usageOf(records(1_700), dataset);
  // One more flush confirms the last batch and writes its data points.
  for (let again = 2; again > 0; ring()) if (!(await flush())) again -= 1;
  expect([written(), new Set(taken).size, taken.length]).toEqual([1_700, points, points]);
});

test('writes the fields of a data point in the order that queries expect', async () => {
  const points: unknown[] = [];
  const record: UsageRecord = {
    ...recordOf(1),
    upstream: 'near',
    status: 'failed',
    errorCode: 'upstream_error',
    finishReasons: ['stop', 'length'],
    usage: { promptTokens: 7, cachedTokens: 5, completionTokens: 3 },
    startedAt: 1000,
    latencyMs: 40,
    firstTokenMs: 9,
    cost: 12,
  };
  const { flush } = usageOf([record, recordOf(2)], { writeDataPoint: (point) => points.push(point) });
  await flush();
  await flush();
  expect(points).toEqual([
    {
      indexes: ['acme'],
      blobs: ['r1', 'key', 'tiny', 'near', 'failed', 'upstream_error', 'stop,length'],
      doubles: [7, 5, 3, 40, 9, 1000, 12],
    },
    {
      indexes: ['acme'],
      blobs: ['r2', 'key', 'tiny', '', 'completed', '', ''],
      doubles: [0, 0, 0, 1, -1, 0, 0],
    },
  ]);
});
