import { expect, type TestContext } from 'vitest';
import { costOf } from '../../../../worker/limits/usage/price.ts';
import { newDirectory } from '../../../support/new-directory.ts';
import { ADMIN_KEY_SHA256, admin, tenantWithKey } from '../../admin/admin-client.ts';
import { eventually } from '../../support/eventually.ts';
import { startFakeOrigin } from '../../support/fake-origin.ts';
import { open, Stage, takeAll } from '../../support/stage.ts';
import { spawnWorker, type WorkerProcess } from '../../support/worker-process.ts';

/**
 * Kills Worker, object and database at the same moment; only the origin keeps running. The next
 * processes have only the data on disk.
 */

const SLOTS = 24;
const CRASHES = 3;
/** Reservations of Workers that crash end by themselves, those of the last one never: their slots count. */
const BRIEF_MS = 5_000;
const LONG_MS = 600_000;

const usage = async (client: WorkerProcess) => (await admin(client, 'GET', '/usage?tenant=crash')).body.total;

/** Crashes, takes all slots of the next Worker, and reads the bill. */
export async function crashRepeatedly({ onTestFinished }: TestContext): Promise<void> {
  const origin = await startFakeOrigin();
  const state = newDirectory();
  /** @param reservationMs lifetime of the reservations that this Worker makes */
  const start = (reservationMs: number): Promise<WorkerProcess> =>
    spawnWorker({
      origin: { url: origin.url, secret: origin.secret },
      vars: {
        ADMIN_KEY_SHA256,
        MODELS_TTL_MS: '5000',
        RESERVATION_TTL_MS: String(reservationMs),
      },
      options: { entry: 'test/worker/support/entries/distant-limiter.ts', state },
    });
  let worker = await start(BRIEF_MS);
  onTestFinished(async () => {
    await worker.kill();
    await origin.stop();
  });
  const { key } = await tenantWithKey(worker, 'crash', { concurrent_requests: SLOTS });
  // No count of tokens has a whole cost.
  const price = { version: 1, prompt: 333_333_000, cached: 333_333_000, completion: 1_234_567_000 };
  await admin(worker, 'POST', '/prices', {
    model: 'org/tiny',
    prompt_micros: 333_333,
    completion_micros: 1_234_567,
  });
  const stage = new Stage(origin);
  for (let crash = 1; crash <= CRASHES; crash += 1) {
    // Some requests have just ended, some run, some are being admitted.
    const ended = await open(worker, key, 6);
    stage.endAll();
    await Promise.all(ended.map((response) => response.text()));
    // Those of the last crash hold all slots until they expire, if the next Worker starts before that.
    const running = await takeAll(worker, key, 1);
    const arriving = open(worker, key, 6).catch(() => []);
    await new Promise((resolve) => setTimeout(resolve, 40 * (crash - 1)));
    await worker.kill();
    await Promise.all([arriving, ...running.map((response) => response.text().catch(() => ''))]);
    worker = await start(crash < CRASHES ? BRIEF_MS : LONG_MS);
  }
  const taken = await takeAll(worker, key, SLOTS);
  expect(await open(worker, key, 12)).toEqual([]);
  expect([taken.length, stage.running]).toEqual([SLOTS, SLOTS]);
  stage.endAll();
  await Promise.all(taken.map((response) => response.text()));
  const { requests, promptTokens, completionTokens } = stage.generated();
  const costs = [...origin.accounts.values()].map((account) => costOf(price, account!.usage));
  const cost = costs.reduce((sum, one) => sum + one, 0);
  const tokens = {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    cost_micros: cost,
  };
  const total = await eventually(
    () => usage(worker),
    (told) =>
      told.completion_tokens === completionTokens &&
      told.prompt_tokens === promptTokens &&
      told.cost_micros === cost,
  );
  expect(total).toMatchObject(tokens);
  // Some requests were admitted but never reached the origin.
  expect(total.requests).toBeGreaterThanOrEqual(requests);
}
