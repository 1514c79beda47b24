import Table from 'cli-table3';
import type { Trace } from '../../../origin/cli/load.ts';
import { mulberry32 } from '../../support/random.ts';
import { type Plan, type Progress, tokenIds } from './plan.ts';
import { median, rounded } from './statistics.ts';
import type { Job, Target } from './target.ts';

/** Measures prompts that begin as earlier ones did, with the prefix store and without it. */

/** Prompts or conversations. If they are more than the slots, these keep none of them until its next turn. */
export const PROMPTS = 24;
const PROMPT_TOKENS = 180;
const ANSWER_TOKENS = 64;
/** Of each conversation. The first is not measured. */
const TURNS = 3;
/** Of the texts of the evaluation workload, each with four continuations that are scored. */
const CONTEXT_TOKENS = 1000;
const CONTINUATIONS = 4;
const CONTINUATION_TOKENS = 8;
const EVALUATION_STREAMS = 4;

export interface Measured {
  readonly name: string;
  /** Tokens generated per second, prefill included. An evaluation generates one token per continuation. */
  readonly tokensPerSecond: number;
  /** Median, in milliseconds. */
  readonly firstTokenMs: number;
}

export interface SharedPrefixReport {
  readonly targets: readonly { readonly name: string; readonly measured: readonly Measured[] }[];
  /** Median over the rounds of tokens/s with the store ÷ without it, by measurement. */
  readonly gains: readonly number[];
}

const inStreams = (target: Target, streams: number, jobs: readonly Job[]): Promise<Trace[]> =>
  together(target, streams, jobs, (job) => target.run({ ...job, cachePrompt: true }));

/** Runs the jobs in order, `streams` at once. */
async function together<T>(
  target: Target,
  streams: number,
  jobs: readonly T[],
  run: (job: T) => Promise<Trace>,
): Promise<Trace[]> {
  const traces: Trace[] = [];
  let next = 0;
  const stream = async (): Promise<void> => {
    for (let index = next++; index < jobs.length; index = next++) {
      const trace = await run(jobs[index] as T);
      if (trace.status !== 200 || trace.error !== null) {
        throw new Error(`${target.name}: status ${trace.status}, ${trace.error ?? 'no error'}`);
      }
      traces[index] = trace;
    }
  };
  await Promise.all(Array.from({ length: streams }, stream));
  return traces;
}

function measure(name: string, traces: readonly Trace[]): Measured {
  const begun = Math.min(...traces.map(({ sent }) => sent));
  const ended = Math.max(...traces.map((trace) => trace.ended));
  const tokens = traces.reduce((sum, trace) => sum + trace.tokens, 0);
  const firstTokenMs = median(traces.map(({ sent, events }) => (events[0] ?? Number.NaN) - sent));
  return { name, tokensPerSecond: (1000 * tokens) / (ended - begun), firstTokenMs };
}

/** How many requests a workload has, and at once. */
interface Load {
  readonly streams: number;
  readonly prompts: number;
}

async function repeated(target: Target, { streams, prompts }: Load, seed: number): Promise<Measured[]> {
  const jobs = Array.from({ length: prompts }, (_, index): Job => {
    return { prompt: tokenIds(seed + index, PROMPT_TOKENS), maxTokens: ANSWER_TOKENS };
  });
  const first = await inStreams(target, streams, jobs);
  const again = await inStreams(target, streams, jobs);
  return [
    measure(`new prompts, ${streams} streams`, first),
    measure(`the same again, ${streams} streams`, again),
  ];
}

/** Returns words that most vocabularies split into about `count` tokens. */
function words(seed: number, count: number): string {
  const random = mulberry32(seed);
  const list = 'the old man took a small boat and went over to see what had become of his house'.split(' ');
  return Array.from({ length: count }, () => ` ${list[Math.floor(random() * list.length)]}`).join('');
}

/** Each prompt is the last one, its answer and a question. */
async function chat(target: Target, { streams, prompts }: Load, seed: number): Promise<Measured[]> {
  const later: Trace[] = [];
  let texts = Array.from({ length: prompts }, (_, index) => words(seed + index, PROMPT_TOKENS));
  for (let turn = 0; turn < TURNS; turn++) {
    const jobs = texts.map((prompt): Job => ({ prompt, maxTokens: ANSWER_TOKENS, keepsText: true }));
    const traces = await inStreams(target, streams, jobs);
    if (turn > 0) later.push(...traces);
    const answered = (prompt: string, index: number) => prompt + (traces[index]?.text ?? '');
    texts = texts.map((prompt, index) => answered(prompt, index) + words(seed + turn + index, 20));
  }
  return [measure(`chat, ${streams} streams`, later)];
}

async function evaluation(target: Target, prompts: number, seed: number): Promise<Measured[]> {
  const jobs = Array.from({ length: prompts }, (_, index): Job => {
    const context = tokenIds(seed + Math.floor(index / CONTINUATIONS), CONTEXT_TOKENS);
    const prompt = [...context, ...tokenIds(seed + 1000 + index, CONTINUATION_TOKENS)];
    return { prompt, maxTokens: 1, fields: { echo: true, logprobs: 1 } };
  });
  const traces = await inStreams(target, EVALUATION_STREAMS, jobs);
  return [measure(`evaluation, ${EVALUATION_STREAMS} streams`, traces)];
}

/** The same texts and continuations, in one request per text. */
async function scoring(target: Target, prompts: number, seed: number): Promise<Measured[]> {
  if (target.score === undefined) return [];
  const seeds = Array.from({ length: Math.ceil(prompts / CONTINUATIONS) }, (_, index) => seed + index);
  const traces = await together(target, EVALUATION_STREAMS, seeds, (one) => {
    const continuations = Array.from({ length: CONTINUATIONS }, (_, index) =>
      tokenIds(1000 + CONTINUATIONS * one + index, CONTINUATION_TOKENS),
    );
    return target.score!(tokenIds(one, CONTEXT_TOKENS), continuations);
  });
  return [measure(`evaluation by /v1/score, ${EVALUATION_STREAMS} streams`, traces)];
}

type Workload = (target: Target, seed: number) => Promise<readonly Measured[]>;

type Sizes = Pick<Plan, 'concurrency' | 'waves' | 'prompts'>;

const repeatedAt = ({ concurrency, prompts }: Sizes): Workload[] =>
  concurrency.map((streams) => (target, seed) => repeated(target, { streams, prompts }, seed));

/** The workloads for each number of streams. The seed differs per round, for new prompts. */
const workloads = ({ concurrency, prompts }: Sizes): Workload[] => [
  ...concurrency.flatMap((streams): Workload[] => [
    (target, seed) => repeated(target, { streams, prompts }, seed),
    (target, seed) => chat(target, { streams, prompts }, seed),
  ]),
  (target, seed) => evaluation(target, prompts, seed),
  (target, seed) => scoring(target, prompts, seed),
];

/**
 * @param targets take turns; the first has a prefix store, the second has none
 * @param repeatedOnly whether the targets can only repeat prompts
 */
export async function measureSharedPrefix(
  targets: readonly Target[],
  plan: Sizes,
  progress: Progress,
  repeatedOnly: boolean,
): Promise<SharedPrefixReport> {
  const parts = repeatedOnly ? repeatedAt(plan) : workloads(plan);
  const rounds: Measured[][][] = [];
  // The first round warms up.
  for (let round = 0; round <= plan.waves; round++) {
    const results: Measured[][] = targets.map(() => []);
    const order = round % 2 === 0 ? [...targets.keys()] : [...targets.keys()].reverse();
    for (const [part, workload] of parts.entries()) {
      progress((round + part / parts.length) / (plan.waves + 1), `round ${round}`);
      // One right after the other, because the speed of a machine drifts.
      for (const index of order) {
        results[index]?.push(
          ...(await workload(targets[index] as Target, 1_000_000 * round + 10_000 * part)),
        );
      }
    }
    if (round > 0) rounds.push(results);
  }
  const names = targets.map(({ name }) => name);
  return summary(names, rounds);
}

/** @param rounds by round, target and measurement */
export function summary(names: readonly string[], rounds: readonly Measured[][][]): SharedPrefixReport {
  const [first] = rounds;
  const medianOf = (target: number, at: number, value: keyof Omit<Measured, 'name'>) =>
    median(rounds.map((round) => round[target]?.[at]?.[value] ?? Number.NaN));
  const targets = names.map((name, target) => ({
    name,
    measured: (first?.[target] ?? []).map((one, at) => ({
      name: one.name,
      tokensPerSecond: medianOf(target, at, 'tokensPerSecond'),
      firstTokenMs: medianOf(target, at, 'firstTokenMs'),
    })),
  }));
  const gain = (round: Measured[][], at: number) =>
    (round[0]?.[at]?.tokensPerSecond ?? Number.NaN) / (round[1]?.[at]?.tokensPerSecond ?? Number.NaN);
  const gains = (first?.[0] ?? []).map((_, at) => median(rounds.map((round) => gain(round, at))));
  return { targets, gains };
}

/** One row per measurement: tokens/s and time to first token of each target. */
export function sharedPrefixTable({ targets, gains }: SharedPrefixReport): string {
  const heads = targets.map(({ name }) => `${name}: tokens/s, TTFT ms`);
  const table = new Table({ head: ['', ...heads, 'gain'], style: { head: [], border: [] } });
  for (const [at, gain] of gains.entries()) {
    const cells = targets.map(({ measured }) => {
      const { tokensPerSecond = Number.NaN, firstTokenMs = Number.NaN } = measured[at] ?? {};
      return `${rounded(tokensPerSecond)}, ${rounded(firstTokenMs, 1)}`;
    });
    table.push([targets[0]?.measured[at]?.name ?? '', ...cells, `${rounded(gain, 2)} ×`]);
  }
  return table.toString();
}
