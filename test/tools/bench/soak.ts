import type { Trace } from '../../../origin/cli/load.ts';
import { mean } from './statistics.ts';
import type { Job, Target } from './target.ts';

export interface SoakOptions {
  readonly seconds: number;
  /** Number of clients by tenant. Each sends its next request as soon as the last has ended. */
  readonly clients: Readonly<Record<string, number>>;
  readonly job: (tenant: string, index: number) => Job;
  /** Milliseconds that a refused client waits. A real client would honour `retry-after`. */
  readonly refusedPauseMs: number;
  /** Resident bytes of the server, sampled every second. */
  readonly memory: () => Promise<number>;
}

export interface SoakResult {
  readonly completed: number;
  /** Requests refused with 503 before the stream. */
  readonly refused: number;
  /** Other failures, by status and error. */
  readonly failures: Readonly<Record<string, number>>;
  readonly tokensByTenant: Readonly<Record<string, number>>;
  /** Mean memory in the second and the last quarter of the run, in MiB. */
  readonly memoryMiB: { readonly early: number; readonly late: number };
}

const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** Overloads a target for some time. Counts refusals, failures, tokens by tenant, and samples the memory. */
export async function soak(target: Target, options: SoakOptions): Promise<SoakResult> {
  const until = performance.now() + options.seconds * 1000;
  const tokens: Record<string, number> = {};
  const failures: Record<string, number> = {};
  let completed = 0;
  let refused = 0;
  const note = async (tenant: string, trace: Trace): Promise<void> => {
    if (trace.status === 200 && trace.error === null) {
      completed += 1;
      tokens[tenant] = (tokens[tenant] ?? 0) + trace.tokens;
    } else if (trace.status === 503) {
      refused += 1;
      await sleep(options.refusedPauseMs);
    } else {
      const kind = `${trace.status} ${trace.error}`;
      failures[kind] = (failures[kind] ?? 0) + 1;
    }
  };
  const client = async (tenant: string, number: number): Promise<void> => {
    for (let index = number; performance.now() < until; index += 1000) {
      await note(tenant, await target.run(options.job(tenant, index)));
    }
  };
  const memory: number[] = [];
  const watch = async (): Promise<void> => {
    while (performance.now() < until) {
      memory.push(await options.memory());
      await sleep(1000);
    }
  };
  const clients = Object.entries(options.clients).flatMap(([tenant, count]) =>
    Array.from({ length: count }, (_, number) => client(tenant, number)),
  );
  await Promise.all([watch(), ...clients]);
  const quarter = Math.floor(memory.length / 4);
  return {
    completed,
    refused,
    failures,
    tokensByTenant: tokens,
    memoryMiB: {
      early: mean(memory.slice(quarter, 2 * quarter)) / 2 ** 20,
      late: mean(memory.slice(-quarter)) / 2 ** 20,
    },
  };
}
