import { DAY_MS, dayName } from '../../../worker/limits/usage/usage-sums.ts';
import { ADMIN_KEY_SHA256, admin } from '../../worker/admin/admin-client.ts';
import { startWorker } from '../../worker/support/worker.ts';
import { workerdCpuMs } from './edge/workerd-cpu.ts';
import type { Figures } from './figures.ts';
import { median, rounded } from './statistics.ts';

/** Questions about a year of usage of 100 keys, over HTTP: 36,500 rows of day, model and key. */

const GROUPINGS = ['model', 'key', 'day', 'day,model', 'key,model', 'day,key', 'user', 'day,user'];
const ROUNDS = 15;
/** Of one question in a round: /proc counts CPU time in steps of 10 ms. */
const REPEATED = 5;

/** @returns wall and CPU milliseconds per question, minimum and median of all rounds */
export async function measureUsageYear(progress: (share: number, stage: string) => void): Promise<Figures> {
  const vars = { ENVIRONMENT: 'production', ADMIN_KEY_SHA256 };
  const origin = { url: 'http://127.0.0.1:1', secret: 'secret of the benchmark, 32 bytes long' };
  const worker = await startWorker(origin, vars, { entry: 'test/worker/support/entries/filled-ledger.ts' });
  const ask = async (groups: string): Promise<number> => {
    const from = dayName(Date.now() - 364 * DAY_MS);
    const query = `tenant=bench&from=${from}&group_by=${groups}`;
    return (await admin(worker, 'GET', `/usage?${query}`)).body.data.length;
  };
  try {
    const filled = await fetch(`${worker.url}/fill`, { method: 'POST' });
    if (!filled.ok) throw new Error(await filled.text());
    const times = GROUPINGS.map(() => ({ rows: 0, wall: [] as number[], cpu: [] as number[] }));
    for (let round = 0; round < ROUNDS; round += 1)
      for (const [at, groups] of GROUPINGS.entries()) {
        progress(round / ROUNDS, groups);
        const { wall, cpu } = times[at]!;
        const before = workerdCpuMs();
        for (let count = 0; count < REPEATED; count += 1) {
          const begun = performance.now();
          times[at]!.rows = await ask(groups);
          wall.push(performance.now() - begun);
        }
        cpu.push((workerdCpuMs() - before) / REPEATED);
      }
    return GROUPINGS.map((groups, at) => {
      const { rows, wall, cpu } = times[at]!;
      const of = (values: readonly number[]) =>
        `${rounded(Math.min(...values), 1)} / ${rounded(median(values), 1)}`;
      return [`by ${groups}: ${rounded(rows)} rows`, `${of(wall)} ms, of CPU ${of(cpu)} ms`];
    });
  } finally {
    await worker.stop();
  }
}
