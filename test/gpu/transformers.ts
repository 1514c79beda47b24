import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import * as z from 'zod';

const SCRIPT = fileURLToPath(new URL('./transformers_rate.py', import.meta.url));
const rates = z.record(z.string(), z.number());

export interface TransformersOptions {
  readonly python: string;
  /** Directory with the same weights as transformers loads them. */
  readonly directory: string;
  readonly batches: readonly number[];
  readonly context: number;
  readonly steps: number;
}

/** Tokens per second by batch of transformers on the card, or why there are none. */
export function transformersRates(options: TransformersOptions): ReadonlyMap<number, number> | string {
  const { python, directory, batches, context, steps } = options;
  const run = spawnSync(python, [SCRIPT, directory, batches.join(','), String(context), String(steps)], {
    encoding: 'utf8',
  });
  if (run.error !== undefined) return `${python}: ${run.error.message}`;
  if (run.status !== 0) return run.stderr.trim().split('\n').at(-1) ?? `exit code ${run.status}`;
  const found = rates.parse(JSON.parse(run.stdout.trim().split('\n').at(-1) ?? '{}'));
  return new Map(Object.entries(found).map(([batch, rate]) => [Number(batch), rate]));
}
