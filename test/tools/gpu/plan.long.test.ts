import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { temporaryDirectory } from '../../origin/model/synthetic-runner.ts';
import { contentsToRun, NODE, writeTar } from './luggage/luggage.ts';
import { STAGES } from './plan.ts';

interface Result {
  readonly stage: string;
  readonly code: number | null;
  readonly report: {
    readonly notRun: readonly string[];
    readonly reports: readonly { experiments: object }[];
  };
}

const luggage = mkdtempSync(join(tmpdir(), 'luggage-'));
afterAll(() => rmSync(luggage, { recursive: true, force: true }));

/** Unpacks the luggage, apart from the CUDA provider, where no other module is found. */
beforeAll(() => {
  if (!existsSync(NODE)) return;
  const { installed, sources } = contentsToRun();
  writeTar(join(luggage, 'tar'), [...installed, ...sources]);
  execFileSync('tar', ['-xf', 'tar'], { cwd: luggage });
});

function plan(...args: string[]): readonly Result[] {
  const out = temporaryDirectory();
  const all = [
    'test/tools/gpu/main.ts',
    '--batches',
    '1,2',
    '--rehearse',
    'one-layer',
    '--out',
    out,
    ...args,
  ];
  spawnSync(NODE, all, { cwd: luggage, encoding: 'utf8' });
  return JSON.parse(readFileSync(join(out, 'plan.json'), 'utf8')) as Result[];
}

const packed = it.runIf(existsSync(NODE));

const kindOf = ({ parts, questions }: (typeof STAGES)[number]) => `${parts} ${questions}`;
/** Those that differ in more than their model, which is the same for all here. */
const DISTINCT = STAGES.filter(
  (stage, at) => STAGES.findIndex((other) => kindOf(other) === kindOf(stage)) === at,
).map(({ name }) => name);

packed(
  'each kind of stage runs in the unpacked luggage with a small model on the CPU, and each question has an answer',
  () => {
    const results = plan('--providers', 'cpu', '--plan', '600', '--stages', DISTINCT.join());
    expect(results.map(({ stage, code }) => [stage, code])).toEqual(DISTINCT.map((name) => [name, 0]));
    const answers = results.flatMap(({ report }) => Object.entries(report.reports[0]!.experiments));
    const failed = answers
      .filter(([, answer]) => 'error' in (answer as object))
      .map(([question]) => question);
    // The CPU has no driver that could be asked for the memory of a card.
    expect(failed).toEqual(['device memory in MiB by batch, up and down']);
  },
);

packed('a stage without time left is reported as not run, and those before it stay', () => {
  const results = plan('--providers', 'cpu', '--plan', '1');
  expect(results.map(({ stage }) => stage)).toEqual(STAGES.map(({ name }) => name));
  expect(results[0]!.code).toBe(124);
  expect(results.at(-1)!.code).toBeNull();
});
