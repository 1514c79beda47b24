import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

/** The stages of a day with a card. Each is a process of its own, so that a lost card costs one of them. */

interface Stage {
  readonly name: string;
  /** Expected on an H100. A stage gets three times as much. */
  readonly seconds: number;
  readonly model: string;
  readonly parts: readonly string[];
  /** Words of questions. */
  readonly questions?: string;
  readonly batches?: string;
  readonly context?: number;
  readonly environment?: Readonly<Record<string, string>>;
}

const LLAMA = '1.2b-fp16';

/** Correctness first, then what decides most. */
export const STAGES: readonly Stage[] = [
  { name: 'correct rows', seconds: 60, model: LLAMA, parts: ['gate', 'questions'], questions: 'sparse rows' },
  {
    name: 'decode',
    seconds: 120,
    model: LLAMA,
    parts: ['rates', 'questions'],
    questions: 'decode in the,over HTTP',
  },
  {
    name: 'prompts and scores',
    seconds: 40,
    model: LLAMA,
    parts: ['questions'],
    questions: 'prefill,scored',
  },
  { name: 'bfloat16', seconds: 40, model: '1.2b-bf16', parts: ['gate', 'rates'] },
  ...['1.2b-fp16', '1.2b-kv-int8', '1.2b-kv-int8-channels', '1.2b-kv-fp8', '1.2b-bf16-kv-fp8'].map(
    (model): Stage => ({
      name: `long rows of ${model}`,
      seconds: 40,
      model,
      parts: ['gate', 'rates'],
      batches: '1,32,128',
      context: 4096,
    }),
  ),
  { name: 'gate and up apart', seconds: 30, model: '1.2b-fp16-apart', parts: ['rates'] },
  { name: '4 bits', seconds: 30, model: '1.2b-4bit', parts: ['rates'], batches: '1,8,32' },
  {
    name: '4 bits, other products',
    seconds: 30,
    model: '1.2b-4bit',
    parts: ['rates'],
    batches: '1,8,32',
    environment: { ORT_FPA_INTB_GEMM: '1' },
  },
  { name: '8 B', seconds: 60, model: '8b-fp16', parts: ['rates'], batches: '1,8,32', context: 1024 },
  {
    name: '8 B in 4 bits',
    seconds: 60,
    model: '8b-4bit',
    parts: ['rates'],
    batches: '1,8,32',
    context: 1024,
  },
  {
    name: 'long contexts',
    seconds: 60,
    model: LLAMA,
    parts: ['questions'],
    questions: 'by position',
    batches: '1,8,32',
  },
  {
    name: 'runs that do not wait',
    seconds: 20,
    model: LLAMA,
    parts: ['questions'],
    questions: 'does not wait',
  },
  {
    name: 'memory, store and graphs',
    seconds: 60,
    model: LLAMA,
    parts: ['questions'],
    questions: 'MiB,store,restored,graphs',
  },
  { name: '450 M', seconds: 20, model: '450m-fp16', parts: ['rates'] },
  { name: 'transformers', seconds: 60, model: LLAMA, parts: ['transformers'] },
];

export interface PlanOptions {
  readonly seconds: number;
  readonly providers: readonly string[];
  readonly batches: readonly number[];
  readonly python: string;
  readonly out: string;
  /** Replaces the models of all stages, to rehearse them. */
  readonly rehearse?: string | undefined;
}

interface Result {
  readonly stage: string;
  /** Code 124 = ended by its limit, null = no time was left. */
  readonly code: number | null;
  readonly seconds: number;
  /** What the stage wrote, also if it was cut. */
  readonly report: unknown;
}

const PATIENCE = 3;
const MAIN = fileURLToPath(new URL('main.ts', import.meta.url));

/** Runs all stages in order. Returns the exit code: 0 if each has ended well. */
export function runPlan(options: PlanOptions, stages = STAGES): number {
  const { seconds, out } = options;
  mkdirSync(out, { recursive: true });
  const end = performance.now() + 1000 * seconds;
  const results: Result[] = [];
  for (const [index, stage] of stages.entries()) {
    const begun = performance.now();
    const directory = path.join(out, `${index + 1}`);
    const timeout = Math.round(Math.min(PATIENCE * 1000 * stage.seconds, end - begun));
    const code = timeout <= 0 ? null : runStage(stage, options, directory, timeout);
    const file = path.join(directory, 'report.json');
    const report: unknown = existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : null;
    results.push({ stage: stage.name, code, seconds: (performance.now() - begun) / 1000, report });
    // After each stage, because the time on a borrowed machine can end at any moment.
    writeFileSync(path.join(out, 'plan.new'), `${JSON.stringify(results, null, 2)}\n`);
    renameSync(path.join(out, 'plan.new'), path.join(out, 'plan.json'));
    console.log(
      `stage ${index + 1} of ${stages.length}, ${stage.name}: ${code === 0 ? 'done' : `code ${code}`}`,
    );
  }
  return results.every(({ code }) => code === 0) ? 0 : 1;
}

function runStage(stage: Stage, options: PlanOptions, directory: string, timeout: number): number {
  const { providers, batches, python, rehearse } = options;
  const { model, parts, questions, context, environment } = stage;
  const flags = {
    providers: providers.join(),
    model: rehearse ?? model,
    batches: rehearse ? batches.join() : (stage.batches ?? batches.join()),
    parts: parts.join(),
    python,
    out: directory,
    ...(questions !== undefined && { experiments: questions }),
    ...(context !== undefined && !rehearse && { context: `${context}` }),
  };
  const args = Object.entries(flags).flatMap(([name, value]) => [`--${name}`, value]);
  const env = { ...process.env, ...environment };
  const { status } = spawnSync(process.execPath, [MAIN, ...args], { stdio: 'inherit', env, timeout });
  return status ?? 124;
}
