import { setTimeout as sleep } from 'node:timers/promises';
import { expect, type TestContext } from 'vitest';
import type { Usage } from '../../../shared/generation.ts';
import { newDirectory } from '../../support/new-directory.ts';
import { randomFrom } from '../../support/random.ts';
import { ADMIN_KEY_SHA256, admin, tenantWithKey } from '../admin/admin-client.ts';
import { startBillingSystem } from '../support/billing-system.ts';
import { eventually } from '../support/eventually.ts';
import { startFakeOrigin } from '../support/fake-origin.ts';
import { spawnWorker } from '../support/worker-process.ts';
import { BatchClient, lineOf } from './batch-client.ts';
import { SlowOrigin } from './slow-origin.ts';

const LINES = 120;
const KILLS = Number(process.env.BATCH_KILLS ?? 4);
const PRICE = { prompt_micros: 1_000_000, completion_micros: 2_500_000, batch_permille: 500 };

/** Half of 1 micro-unit per prompt token and 2.5 per completion token, rounded up. */
const costOf = ({
  promptTokens,
  completionTokens,
}: Pick<Usage, 'promptTokens' | 'completionTokens'>): number =>
  Math.ceil((2 * promptTokens + 5 * completionTokens) / 4);

/** Kills workerd and the origin while batches run, and reads their records, the ledger and the bill. */
export async function killDuringBatches({ onTestFinished }: TestContext): Promise<void> {
  const random = randomFrom(3_711);
  const origin = await startFakeOrigin();
  const slow = new SlowOrigin(origin);
  const billing = await startBillingSystem();
  const state = newDirectory();
  const plan = {
    origin: { url: origin.url, secret: origin.secret },
    vars: {
      ADMIN_KEY_SHA256,
      RESERVATION_TTL_MS: '1000',
      BILLING_URL: billing.url,
      BILLING_SECRET: 'a secret for billing',
    },
    options: { state },
  };
  let worker = await spawnWorker(plan);
  onTestFinished(async () => {
    await worker.kill();
    await origin.stop();
    await billing.stop();
  });
  await admin(worker, 'POST', '/prices', { model: 'org/tiny', ...PRICE });
  const { key } = await tenantWithKey(worker, 'killed');
  const client = () => new BatchClient(worker, key);
  const ids: string[] = [];
  let lines = 0;
  for (let kill = 0; kill < KILLS; kill += 1) {
    const content = Array.from({ length: LINES }, (_, index) =>
      lineOf(
        `${index}`,
        { prompt: `${index % 7}`, max_tokens: 8 },
        index % 40 === 3 ? { method: 'GET' } : {},
      ),
    );
    // A tenant has at most 20 running batches.
    if (kill >= 10) await client().until(ids[kill - 10]!, 'completed');
    ids.push((await client().start(content.join('\n'))).id);
    lines += LINES;
    await sleep(random() * 600);
    if (random() < 0.3) {
      slow.breakOff();
    } else {
      await worker.kill();
      worker = await spawnWorker(plan);
    }
  }
  let records = 0;
  for (const id of ids) {
    const batch = await client().until(id, 'completed');
    const output = await client().records(batch.output_file_id);
    const errors = await client().records(batch.error_file_id);
    const seen = [...output, ...errors].map((record) => Number(record.custom_id));
    expect(seen.toSorted((a, b) => a - b)).toEqual(Array.from({ length: LINES }, (_, index) => index));
    expect(errors).toHaveLength(LINES / 40);
    expect(batch.request_counts).toEqual({ total: LINES, completed: output.length, failed: errors.length });
    records += seen.length;
  }
  expect(records).toBe(lines);
  const ledger = async () => (await admin(worker, 'GET', '/usage?tenant=killed')).body.total;
  const used = () => {
    const cost_micros = slow.usages().reduce((sum, usage) => sum + costOf(usage), 0);
    return { ...slow.used(), cost_micros };
  };
  // The last record may be of a request that has only a prompt.
  const { requests, cost_micros: cost } = await eventually(ledger, (total) =>
    Object.entries(used()).every(([name, amount]) => total[name] === amount),
  );
  // A bill leaves at least once, with the same id each time.
  await eventually(
    async () => billing.of('killed'),
    (bill) => bill.events === requests,
  );
  expect(billing.of('killed').micros).toBe(cost);
}
