import { mean } from './statistics.ts';
import type { Job, Target, Trace } from './target.ts';

export interface SoakOptions {
  readonly seconds: number;
  /** Clients of each tenant, each sending its next request as soon as the last has ended. */
  readonly clients: Readonly<Record<string, number>>;
  readonly job: (tenant: string, index: number) => Job;
  /** Milliseconds a refused client waits; a real one would honour retry-after. */
  readonly refusedPauseMs: number;
  /** Resident bytes of the server, sampled every second. */
  readonly memory: () => Promise<number>;
}

export interface SoakResult {
  readonly completed: number;
  /** 503 before any byte of a stream. */
  readonly refused: number;
  /** Everything else that is not a completion, by kind. */
  readonly failures: Readonly<Record<string, number>>;
  readonly tokensByTenant: Readonly<Record<string, number>>;
  /** Mean of the second quarter of the run and of the last, in MiB. */
  readonly memoryMiB: { readonly early: number; readonly late: number };
}

const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** Overload that lasts: what was refused, what failed, who got how much, whether memory grew. */
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
