import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import * as z from 'zod';
import { benchModels } from '../bench/models.ts';
import { writeTransformersModel } from './transformers-model.ts';

const SCRIPT = fileURLToPath(new URL('./transformers_rate.py', import.meta.url));
/** A borrowed machine has little time. */
const MAX_MS = 150_000;

const measured = z.object({
  /** Device and precision. */
  device: z.string(),
  /** The likeliest continuation of the prompt in greedy-start.ts. */
  greedy: z.array(z.int()),
  /** Tokens per second by batch. */
  rates: z.record(z.string(), z.number()),
  /** The same with a static cache and one CUDA graph per step, or why it could not be measured. */
  static: z.record(z.string(), z.union([z.number(), z.string()])),
});

export type TransformersRates = z.infer<typeof measured>;

export interface TransformersOptions {
  readonly python: string;
  /** A model of the benchmarks, or a directory. */
  readonly model: string;
  /** Directory with the same weights as transformers loads them; absent = made from the model. */
  readonly directory?: string | undefined;
  readonly batches: readonly number[];
  readonly context: number;
  readonly steps: number;
}

/** Measures transformers on the GPU, or on the CPU if there is none. Returns the reason if it cannot run. */
export function transformersRates(options: TransformersOptions): TransformersRates | string {
  if (options.directory !== undefined) return ratesOf(options.directory, options);
  const bench = benchModels[options.model];
  if (bench === undefined) return 'no --transformers directory was given';
  const made = mkdtempSync(path.join(tmpdir(), 'continuo-transformers-'));
  try {
    if (bench.convertible === false)
      copyFileSync(path.join(bench.directory(), 'config.json'), path.join(made, 'config.json'));
    else writeTransformersModel(bench.directory(), made);
    return ratesOf(made, options);
  } finally {
    rmSync(made, { recursive: true });
  }
}

function ratesOf(
  directory: string,
  { python, batches, context, steps }: TransformersOptions,
): TransformersRates | string {
  const run = spawnSync(python, [SCRIPT, directory, batches.join(','), String(context), String(steps)], {
    encoding: 'utf8',
    timeout: MAX_MS,
  });
  if (run.error !== undefined) return `${python}: ${run.error.message}`;
  if (run.status !== 0) return run.stderr.trim().split('\n').at(-1) ?? `exit code ${run.status}`;
  return measured.parse(JSON.parse(run.stdout.trim().split('\n').at(-1) ?? '{}'));
}
