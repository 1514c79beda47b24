import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { Batch } from '../../../shared/batch.ts';
import { randomFrom, runs } from '../../support/random.ts';
import { ADMIN_KEY_SHA256, admin, tenantWithKey } from '../admin/admin-client.ts';
import { eventually } from '../support/eventually.ts';
import { acceptedFor, defaultScript, doneFor, finishOf, tokenEvent } from '../support/scripts.ts';
import { workerForTests } from '../support/worker-for-tests.ts';
import { BatchClient, lineOf } from './batch-client.ts';
import { SlowOrigin } from './slow-origin.ts';

const { worker, origin } = workerForTests({ ADMIN_KEY_SHA256 });
const client = new BatchClient(worker);
let slow: SlowOrigin;
beforeEach(() => {
  slow = new SlowOrigin(origin);
});

const linesOf = (count: number, tokens = 4): string =>
  Array.from({ length: count }, (_, index) => lineOf(`${index}`, { max_tokens: tokens })).join('\n');

/** Returns the ids in both result files of a batch that has ended, in the order of their numbers. */
async function recorded(batch: Batch, of = client): Promise<number[]> {
  const files = [await of.records(batch.output_file_id), await of.records(batch.error_file_id)];
  return files
    .flatMap((records) => records.map((record) => Number(record.custom_id)))
    .toSorted((a, b) => a - b);
}

const numbersTo = (count: number) => Array.from({ length: count }, (_, index) => index);

describe('cancelling', () => {
  test('keeps the results of lines that run, and gives all others an error', async () => {
    const { id } = await client.start(linesOf(200, 40));
    await eventually(
      async () => slow.running,
      (running) => running >= 8,
    );
    const asked = (await client.call('POST', `/v1/batches/${id}/cancel`)).body;
    expect(asked).toMatchObject({ status: 'cancelling', cancelling_at: expect.any(Number) });
    const batch = await client.until(id, 'cancelled');
    expect(batch.request_counts.completed).toBeGreaterThanOrEqual(8);
    expect(batch.request_counts.completed).toBe(origin.requests.length);
    expect(await recorded(batch)).toEqual(numbersTo(200));
    const [error] = await client.records(batch.error_file_id);
    expect(error).toMatchObject({ response: null, error: { code: 'batch_cancelled' } });
    // A repeated cancellation changes nothing.
    expect((await client.call('POST', `/v1/batches/${id}/cancel`)).body).toEqual(batch);
  });

  test('a batch that has ended is refused', async () => {
    const { id } = await client.start(linesOf(1));
    await client.until(id, 'completed');
    const { status, body } = await client.call('POST', `/v1/batches/${id}/cancel`);
    expect([status, body.error.code]).toEqual([409, 'conflict']);
  });

  test('at any moment leaves a batch of one end, with every line recorded once or no line run', async () => {
    const random = randomFrom(3_712);
    for (let run = 0; run < runs(12); run += 1) {
      origin.requests.length = 0;
      const file = await client.upload(linesOf(60));
      const creating = client.create(file.id);
      await new Promise((resolve) => setTimeout(resolve, random() * 250));
      const [newest] = (await client.call('GET', '/v1/batches?limit=1')).body.data as unknown as Batch[];
      if (newest?.input_file_id === file.id) await client.call('POST', `/v1/batches/${newest.id}/cancel`);
      const { body } = await creating;
      const batch = await client.until(body.id, 'cancelled', 'completed');
      const seen = await recorded(batch);
      if (batch.in_progress_at === null) expect([seen, origin.requests.length]).toEqual([[], 0]);
      else expect(seen).toEqual(numbersTo(60));
      expect(batch.request_counts.completed).toBe(origin.requests.length);
    }
  });
});

/** What the origin does for one tenant. Tests of several tenants run at the same time. */
class TenantOrigin {
  readonly accounts = origin.accounts;
  script = defaultScript;
}

/** Lines that wait for seconds. Each has a tenant of its own. */
const PATIENT: Readonly<Record<string, (own: BatchClient, target: TenantOrigin) => Promise<void>>> = {
  async 'run once when the limits of the tenant or the origin have room'(own, target) {
    const slow = new SlowOrigin(target);
    let refusals = 0;
    const { script } = target;
    target.script = (request, wire) => {
      if (refusals >= 20) return script(request, wire);
      refusals += 1;
      const error = { message: 'Full.', type: 'server_error', param: null, code: 'server_is_overloaded' };
      return wire.refuse(503, { error }, { 'retry-after': '1', 'retry-after-ms': '100' });
    };
    const { id } = await own.start(linesOf(40));
    const batch = await own.until(id, 'completed');
    expect(batch.request_counts).toEqual({ total: 40, completed: 40, failed: 0 });
    expect(slow.most).toBeLessThanOrEqual(3);
    expect(await recorded(batch, own)).toEqual(numbersTo(40));
  },

  async 'wait for what those that run have reserved and do not use'(own, target) {
    target.script = async (request, wire) => {
      await new Promise((resolve) => setTimeout(resolve, 100));
      wire.send(...acceptedFor(request), tokenEvent(1, 'x'), finishOf(0, 'stop', 1), doneFor(request, 1));
      wire.end();
    };
    // Each of them uses few of about 42 tokens.
    const { id } = await own.start(linesOf(12, 40));
    const batch = await own.until(id, 'completed');
    expect(batch.request_counts).toEqual({ total: 12, completed: 12, failed: 0 });
  },

  async 'whose answers are long run beside as many others as their answers fit into memory'(own, target) {
    const slow = new SlowOrigin(target);
    slow.text = 'x'.repeat(100_000);
    const { id } = await own.start(linesOf(30, 40));
    await eventually(
      () => own.show(id),
      ({ request_counts }) => request_counts.completed > 8,
    );
    slow.most = 0;
    await own.until(id, 'completed');
    expect(slow.most).toBeLessThanOrEqual(5);
  },

  async 'whose answers break off every time go to the error file, and the others run'(own, target) {
    target.script = (request, wire) =>
      String(request.prompts[0]) === 'poison' ? wire.die() : defaultScript(request, wire);
    const { id } = await own.start([lineOf('0'), lineOf('1', { prompt: 'poison' }), lineOf('2')].join('\n'));
    const batch = await own.until(id, 'completed');
    expect(batch.request_counts).toEqual({ total: 3, completed: 2, failed: 1 });
    expect((await own.records(batch.error_file_id))[0]?.response?.status_code).toBe(502);
  },
};

describe('lines', () => {
  const ends = new Map<string, Promise<void>>();

  // They wait at the same time.
  beforeAll(async () => {
    const limits = [{ concurrent_requests: 3 }, { tokens_per_day: 100, micros_per_day: 1_000_000 }];
    const targets = new Map<string, TenantOrigin>();
    origin.script = (request, wire) => targets.get(request.tenantId)!.script(request, wire);
    for (const [at, [name, run]] of Object.entries(PATIENT).entries()) {
      const target = new TenantOrigin();
      targets.set(`patient-${at}`, target);
      const { key } = await tenantWithKey(worker, `patient-${at}`, limits[at]);
      ends.set(name, run(new BatchClient(worker, key), target));
    }
    await Promise.allSettled(ends.values());
  });

  test.each(Object.keys(PATIENT))('%s', (name) => ends.get(name));
});

describe('a line', () => {
  test('that no time lets run, because a quota is exhausted, gets its answer as an error', async () => {
    const { key } = await tenantWithKey(worker, 'spent', { tokens_per_day: 30 });
    const own = new BatchClient(worker, key);
    const { id } = await own.start(linesOf(20));
    const batch = await own.until(id, 'completed');
    expect(batch.request_counts.completed).toBeLessThan(10);
    const [record] = await own.records(batch.error_file_id);
    expect(record?.response).toMatchObject({
      status_code: 429,
      body: { error: { code: 'insufficient_quota' } },
    });
  });

  test('runs with the key of its batch: a revoked key runs none', async () => {
    const { key, keyId } = await tenantWithKey(worker, 'revoked');
    const own = new BatchClient(worker, key);
    const other = await admin(worker, 'POST', '/keys', { tenant: 'revoked', name: 'other' });
    const { id } = await own.start(linesOf(400, 20));
    await admin(worker, 'DELETE', `/keys/${keyId}`);
    const reader = new BatchClient(worker, other.body.key);
    const batch = await reader.until(id, 'completed');
    expect(batch.request_counts.failed).toBeGreaterThan(0);
    const records = await reader.records(batch.error_file_id);
    expect(records.at(-1)?.response).toMatchObject({ status_code: 401 });
    expect(await recorded(batch, reader)).toEqual(numbersTo(400));
  });

  test('is billed to the tenant as any request is', async () => {
    const { key } = await tenantWithKey(worker, 'billed');
    const own = new BatchClient(worker, key);
    const { id } = await own.start(linesOf(30));
    await own.until(id, 'completed');
    const usage = async () =>
      (await admin(worker, 'GET', '/usage?tenant=billed&group_by=tenant')).body.data[0];
    const ledger = await eventually(usage, (row) => JSON.stringify(row ?? '').includes('"completed":30'));
    expect(ledger).toMatchObject({ requests: 30, ...slow.used() });
  });
});

test('scores run as completions do', async () => {
  origin.reset();
  const line = (id: string) =>
    JSON.stringify({
      custom_id: id,
      method: 'POST',
      url: '/v1/score',
      body: { model: 'default', prompt: 'Hi', continuations: [' a', ' b'] },
    });
  const { id } = await client.start(`${line('a')}\n${line('b')}`, { endpoint: '/v1/score' });
  const batch = await client.until(id, 'completed');
  const [record] = await client.records(batch.output_file_id);
  expect(record?.response?.body).toMatchObject({ object: 'list' });
  expect(origin.requests.every(({ flex }) => flex)).toBe(true);
});

test('a caller who names a key in a header is no batch', async () => {
  const headers = { authorization: 'Bearer none', 'x-batch-key': 'development', batchKey: 'development' };
  expect((await worker.post({ model: 'default', prompt: 'Hi' }, { headers })).status).toBe(401);
});
