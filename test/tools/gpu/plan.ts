import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { RIVALS } from './rivals/rivals.ts';

/** The stages of a day with a card. Each is a process of its own, so that a lost card costs one of them. */

interface Stage {
  readonly name: string;
  /** Expected on an H100. A stage gets three times as much. */
  readonly seconds: number;
  /** Absent = the stage needs none, so it runs while the models of the others are written. */
  readonly model?: string;
  readonly parts: readonly string[];
  /** Words of questions. */
  readonly questions?: string;
  readonly batches?: string;
  readonly context?: number;
  readonly rival?: string;
  readonly environment?: Readonly<Record<string, string>>;
}

const LLAMA = '1.2b-fp16';

/** Correctness first, then what decides most. */
const STAGES: readonly Stage[] = [
  { name: 'correct logits', seconds: 30, parts: ['gate'] },
  { name: 'tests', seconds: 60, parts: ['tests'] },
  { name: 'states', seconds: 60, parts: ['states'] },
  { name: 'correct rows', seconds: 60, model: LLAMA, parts: ['questions'], questions: 'sparse rows' },
  { name: 'out of the box', seconds: 60, model: LLAMA, parts: ['questions'], questions: 'out of the box' },
  {
    name: 'decode',
    seconds: 120,
    model: LLAMA,
    parts: ['rates', 'questions'],
    questions: 'decode in the,over HTTP',
  },
  {
    name: 'runs that begin early',
    seconds: 30,
    model: LLAMA,
    parts: ['questions'],
    questions: 'begin early',
  },
  {
    name: 'prompts and scores',
    seconds: 40,
    model: LLAMA,
    parts: ['questions'],
    questions: 'prefill,scored',
  },
  { name: 'reloads', seconds: 120, model: LLAMA, parts: ['questions'], questions: 'ten reloads,two engines' },
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
    name: 'memory, store and graphs',
    seconds: 60,
    model: LLAMA,
    parts: ['questions'],
    questions: 'MiB,store,restored,graphs',
  },
  { name: '450 M', seconds: 20, model: '450m-fp16', parts: ['rates'] },
  { name: 'transformers', seconds: 60, model: LLAMA, parts: ['transformers'] },
  // One that was not brought is named in the report of its stage.
  ...Object.keys(RIVALS).map((rival) => ({
    name: rival,
    seconds: 120,
    model: LLAMA,
    parts: ['rivals'],
    rival,
  })),
];

export interface PlanOptions {
  readonly seconds: number;
  /** Runs the stages whose name has one of these. */
  readonly stages: readonly string[];
  readonly providers: readonly string[];
  readonly batches: readonly number[];
  readonly python: string;
  readonly rivals: string;
  readonly out: string;
  /** Replaces the models of all stages, to rehearse them. Their tests are loaded and not run. */
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
const WRITE_MODEL = fileURLToPath(new URL('./write-model.ts', import.meta.url));
const CUT = 124;

/** Runs stages in order. Returns the exit code: 0 if each has ended well. */
export async function runPlan(options: PlanOptions): Promise<number> {
  const { seconds, out, rehearse } = options;
  mkdirSync(out, { recursive: true });
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.once(signal, () => process.exit(CUT));
  const end = performance.now() + 1000 * seconds;
  const stages = STAGES.filter(({ name }) => options.stages.some((word) => name.includes(word)));
  const models = stages.flatMap(({ model }) => (model === undefined ? [] : [rehearse ?? model]));
  const written = writeModels(models, 1000 * seconds);
  const results: Result[] = [];
  for (const [index, stage] of stages.entries()) {
    // A model that is still being written would take processors from a measurement.
    if (stage.model !== undefined) await written;
    const begun = performance.now();
    const directory = path.join(out, `${index + 1}`);
    const timeout = Math.round(Math.min(PATIENCE * 1000 * stage.seconds, end - begun));
    const code = timeout <= 0 ? null : await runStage(stage, options, directory, timeout);
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

/** Writes the models at the same time, each by a process. A stage writes one that is missing itself. */
async function writeModels(models: readonly string[], timeout: number): Promise<void> {
  const begun = performance.now();
  const codes = await Promise.all(
    [...new Set(models)].map((model) => runNode([WRITE_MODEL, model], { timeout })),
  );
  const failed = codes.filter((code) => code !== 0).length;
  const seconds = ((performance.now() - begun) / 1000).toFixed(0);
  console.log(`${codes.length} models after ${seconds} s, ${failed} of them not written`);
}

function runStage(stage: Stage, options: PlanOptions, directory: string, timeout: number): Promise<number> {
  const { providers, batches, python, rivals, rehearse } = options;
  const { parts, questions, context, rival, environment } = stage;
  const model = rehearse ?? stage.model;
  const flags = {
    providers: providers.join(),
    batches: rehearse ? batches.join() : (stage.batches ?? batches.join()),
    parts: parts.join(),
    python,
    rivals,
    out: directory,
    ...(rival !== undefined && { rival }),
    ...(model !== undefined && { model }),
    ...(questions !== undefined && { experiments: questions }),
    ...(context !== undefined && !rehearse && { context: `${context}` }),
    ...(rehearse && { rehearse }),
  };
  const args = Object.entries(flags).flatMap(([name, value]) => [`--${name}`, value]);
  return runNode([MAIN, ...args], { timeout, env: { ...process.env, ...environment } });
}

/** Returns the exit code, or 124 if a signal or the limit ended the process. */
async function runNode(
  args: readonly string[],
  { timeout, env }: { readonly timeout: number; readonly env?: NodeJS.ProcessEnv },
): Promise<number> {
  // Leads a group, because an origin that a cut stage leaves behind would keep the memory of the card.
  const child = spawn(process.execPath, args, { stdio: 'inherit', detached: true, env });
  const end = () => {
    try {
      process.kill(-child.pid!, 'SIGKILL');
    } catch {
      // All of the group have ended.
    }
  };
  const timer = setTimeout(end, timeout);
  process.once('exit', end);
  try {
    const [code] = await once(child, 'exit');
    return (code as number | null) ?? CUT;
  } finally {
    clearTimeout(timer);
    process.off('exit', end);
    end();
  }
}
