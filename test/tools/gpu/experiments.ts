import { decode, prefill } from '../../../origin/hub/check/greedy.ts';
import type { DeviceSettings } from '../../../origin/model/config/device.ts';
import { requireCuda, thisMachine } from '../../../origin/model/device/device-choice.ts';
import type { ModelRunner } from '../../../origin/model/model-runner.ts';
import { openCudaDriver } from '../../../origin/model/ort/cuda-driver.ts';
import { type OrtApi, openOrtApi } from '../../../origin/model/ort/ort-capi.ts';
import type { OrtDevice } from '../../../origin/model/ort/ort-device.ts';
import { ordinaryBuffer } from '../../../origin/model/ort/ort-library.ts';
import { scoreFault } from '../../../origin/model/runner/device/check-scores.ts';
import { GraphRunner } from '../../../origin/model/runner/device/graph-runner.ts';
import type { AllocateLogits } from '../../../origin/model/runner/runner-options.ts';
import { SimdKernel } from '../../../origin/sampling/kernel/simd-kernel.ts';
import { Driver } from '../../origin/engine/support/engine-driver.ts';
import { NEUTRAL, submission } from '../../origin/engine/support/submissions.ts';
import { transcribe } from '../../origin/engine/support/transcript.ts';
import { median } from '../bench/statistics.ts';
import { tenReloads, twoEngines } from './reloads.ts';
import { changedRunner, deviceRunnerOn } from './runners.ts';
import { closedLoops, engineRates, httpRates, outOfTheBox, prefixGains, SERVED } from './served-rates.ts';
import { plainVocabulary, SPARSE_THREADS, sparseTokens } from './sparse-tokens.ts';

/** Questions that only a card can answer. Each gives numbers by name, or the error that it ended with. */

export type Answer = Readonly<Record<string, number | string>>;
export type Answers = Readonly<Record<string, Answer>>;

export interface Setting {
  readonly provider: OrtDevice['provider'];
  readonly device: DeviceSettings;
  readonly directory: string;
  readonly batches: readonly number[];
  readonly maxRows: number;
  /** Milliseconds, monotonic. */
  readonly now: () => number;
}

const CONTEXT = 2200;
const PROMPT = 1024;
/** Longest prompt that is computed in chunks. */
const LONG_PROMPT = 2048;
const CHUNKS = [64, 128, 256, 512, 1024, 2048];
const POSITIONS = [64, 4096, 32_000];
const SCORED = 512;
const GRAPH_STEPS = 30;
const MIB = 2 ** 20;

/**
 * @param words run are the questions with one of these
 * @param onAnswers takes all answers so far after each of them
 */
export async function runExperiments(
  setting: Setting,
  words: readonly string[],
  onAnswers: (answers: Answers) => void,
): Promise<Answers> {
  const served = { ...setting, ...SERVED };
  const experiments: Readonly<Record<string, () => Promise<Answer>>> = {
    'tokens from sparse rows against those from whole rows': () => tokensOfSparseRows(setting),
    'decode in the engine': () => engineRates(served),
    'decode over HTTP': () => httpRates(served),
    'closed loops over HTTP': () => closedLoops(served),
    'out of the box: start, burst and closed loops': () => outOfTheBox(served),
    'ten reloads of an engine': () => tenReloads(served, freeMiB),
    'two engines at once': () => twoEngines(served),
    'prefill tokens/s by chunk': () => prefillRates(setting),
    'scored prompt, in ms': () => scoredPrompt(setting),
    'decode step by position, in ms': () => longContexts(setting),
    'decode step of the engine with runs that begin early, in ms': () => earlyRuns(setting),
    'device memory in MiB by batch, up and down': () => arenaGrowth(setting),
    'decode step in ms, with CUDA graphs and without': () => graphTimes(setting),
    'prompts sent before, with a prefix store and without': () => prefixGains(setting),
    'KV of a prompt: computed, kept in main memory and restored, in ms': () => storeTimes(setting),
  };
  const answers: Record<string, Answer> = {};
  for (const [question, run] of Object.entries(experiments)) {
    if (!words.some((word) => question.includes(word))) continue;
    try {
      answers[question] = await run();
    } catch (error) {
      answers[question] = { error: (error as Error).stack! };
    }
    onAnswers(answers);
  }
  return answers;
}

/** The session disposes the stream. */
function device({ provider }: Pick<Setting, 'provider'>, graphs: boolean): OrtDevice {
  if (provider !== 'cuda') return { provider };
  const stream = graphs ? { stream: openCudaDriver().stream(0) } : {};
  return { provider, deviceId: 0, memoryBytes: null, graphs, ...stream };
}

interface Opened {
  readonly slots: number;
  readonly prefillChunk: number;
  readonly graphs?: boolean;
  readonly maxContext?: number;
  readonly allocateLogits?: AllocateLogits;
  readonly api?: OrtApi;
}

async function opened<T>(
  setting: Setting,
  { slots, prefillChunk, graphs = false, maxContext = CONTEXT, allocateLogits, api = openOrtApi() }: Opened,
  use: (runner: ModelRunner) => Promise<T>,
): Promise<T> {
  // Maps the libraries, which ONNX Runtime then finds by name.
  if (setting.provider === 'cuda') requireCuda(0, thisMachine());
  const options = { slots, prefillChunk };
  const runner = deviceRunnerOn(device(setting, graphs), setting.directory, options, api, {
    maxContext,
    allocateLogits,
  });
  try {
    return await use(runner);
  } finally {
    runner.dispose();
  }
}

const promptOf = (length: number, { shape }: ModelRunner) =>
  Array.from({ length }, (_, at) => (at * 31 + 7) % shape.vocabularySize);

async function timed({ now }: Setting, run: () => Promise<unknown>): Promise<number> {
  const start = now();
  await run();
  return now() - start;
}

async function prefillRates(setting: Setting): Promise<Answer> {
  const rates: Record<string, number> = {};
  for (const prefillChunk of CHUNKS) {
    await opened(setting, { slots: 1, prefillChunk, graphs: true }, async (runner) => {
      const prompt = promptOf(Math.min(LONG_PROMPT, runner.shape.contextLength - 1), runner);
      await prefill(runner, 0, prompt);
      const times: number[] = [];
      for (let run = 0; run < 3; run++) times.push(await timed(setting, () => prefill(runner, 0, prompt)));
      rates[prefillChunk] = Math.round((1000 * prompt.length) / median(times));
    });
  }
  return rates;
}

/** A prompt whose positions all get logprobs, and the longest time in which no other sequence decodes. */
async function scoredPrompt(setting: Setting): Promise<Answer> {
  return await opened(setting, { slots: 2, prefillChunk: 512, graphs: true }, async (runner) => {
    const rows = await scoredTimes(setting, changedRunner(runner, {}));
    const { score } = runner;
    if (!score || runner.shape.maxScored === undefined) return rows;
    const scoring = changedRunner(runner, { score: score.bind(runner) });
    const onDevice = await scoredTimes(setting, scoring);
    return {
      ...rows,
      'whole, scored on the device': onDevice.whole,
      'longest step, scored on the device': onDevice['longest step'],
      fault: (await scoreFault({ ...scoring, score: score.bind(runner) })) ?? 'none',
    };
  });
}

async function scoredTimes(setting: Setting, runner: ModelRunner) {
  const length = Math.min(SCORED, runner.shape.contextLength - 8);
  const prompts = [{ tokens: Int32Array.from(promptOf(length, runner)), maxTokens: 0 }];
  const driver = new Driver(runner, {
    tokenBytes: plainVocabulary(runner.shape.vocabularySize),
    eosIds: [],
  });
  const fields = { prompts, echo: true, promptTopLogprobs: 5, cachePrompt: false };
  const steps: number[] = [];
  for (const requestId of ['warm', 'measured']) {
    steps.length = 0;
    driver.submit(submission({ requestId, ...fields }));
    while (!driver.engine.idle) steps.push(await timed(setting, () => driver.step()));
  }
  const whole = steps.reduce((sum, ms) => sum + ms, 0);
  return { positions: length, whole, 'longest step': Math.max(...steps) };
}

/** Graphs of a long context, which attention may divide otherwise than those of a short one. */
async function longContexts(setting: Setting): Promise<Answer> {
  const answer: Record<string, number> = {};
  const rows = setting.batches.filter((count) => count <= 32);
  const size = {
    slots: Math.max(...rows),
    prefillChunk: 512,
    graphs: true,
    maxContext: POSITIONS.at(-1)! + 100,
  };
  await opened(setting, size, async (runner) => {
    for (const position of POSITIONS.filter((at) => at + GRAPH_STEPS < runner.shape.contextLength)) {
      for (const count of rows)
        answer[`${count} rows at ${position}`] = await stepMs(setting, runner, count, position);
    }
  });
  return answer;
}

/** Steps of the engine with runs that begin early, during the host's part, and without. */
async function earlyRuns(setting: Setting): Promise<Answer> {
  const size = { slots: setting.maxRows, prefillChunk: 512, graphs: true };
  return await opened(setting, size, async (runner) => {
    if (!(runner instanceof GraphRunner)) return { fault: 'there are no graphs' };
    if (!runner.runsAhead) return { fault: runner.aheadFault ?? 'graphs were not captured' };
    const answer: Record<string, number | string> = { 'prompts behind a run': runner.promptFault ?? 'begin' };
    for (const rows of setting.batches) {
      const waiting = await engineSteps(setting, runner, rows, false);
      const early = await engineSteps(setting, runner, rows, true);
      answer[`${rows} rows, waits`] = waiting.stepMs;
      answer[`${rows} rows, begins early`] = early.stepMs;
      answer[`${rows} rows, tokens`] = early.tokens === waiting.tokens ? 'equal' : 'others';
    }
    return answer;
  });
}

/** Returns the median of an engine's full decode steps, and all tokens. */
async function engineSteps(setting: Setting, runner: GraphRunner, rows: number, early: boolean) {
  const used = changedRunner(runner, {
    decode: (batch) => runner.decode({ ...batch, continues: early && batch.continues }),
  });
  const { vocabularySize } = runner.shape;
  const driver = new Driver(used, { tokenBytes: plainVocabulary(vocabularySize), eosIds: [] });
  const requests = Array.from({ length: rows }, (_, row) =>
    submission({
      requestId: `${row}`,
      prompts: [{ tokens: Int32Array.from([row, 5, 7]), maxTokens: GRAPH_STEPS }],
      sampling: { ...NEUTRAL, seed: row, temperature: row % 2 },
      cachePrompt: false,
    }),
  );
  for (const request of requests) driver.submit(request);
  const times: number[] = [];
  while (!driver.engine.idle) {
    const ms = await timed(setting, () => driver.engine.step());
    const last = driver.reports.at(-1);
    const reports = last?.type === 'step' ? last.reports : [];
    if (reports.length === 1 && reports[0]!.rows === rows) times.push(ms);
  }
  const tokens = JSON.stringify(
    requests.map(({ requestId }) => transcribe(driver.eventsOf(requestId), 1).choices.get(0)?.ids),
  );
  return { stepMs: Number(median(times.slice(2)).toFixed(3)), tokens };
}

/** Returns the median of decode steps. */
async function stepMs(
  setting: Setting,
  runner: ModelRunner,
  rows: number,
  position: number,
): Promise<number> {
  const tokens = new Int32Array(rows);
  const coldness = runner.sparse ? Array<number>(rows).fill(1) : undefined;
  const times: number[] = [];
  for (let step = 0; step < GRAPH_STEPS; step++) {
    const positions = new Int32Array(rows).fill(position + step);
    const run = async () => runner.decode({ firstSlot: 0, rows, tokens, positions, coldness });
    times.push(await timed(setting, run));
  }
  return Number(median(times.slice(5)).toFixed(3));
}

const decodeRows = (runner: ModelRunner, rows: number, position: number) => {
  const row = { token: 5, position };
  return decode(runner, 0, Array<typeof row>(rows).fill(row), () => position);
};

function batchesUpTo(maxRows: number): number[] {
  const up = Array.from({ length: 8 }, (_, power) => 2 ** power).filter((rows) => rows <= maxRows);
  return [...up, ...up.toReversed()];
}

/** Free memory of the card. */
const freeMiB = () => Math.round(openCudaDriver().freeBytes(0) / MIB);

/** The arena must not grow after the first, largest batch. */
async function arenaGrowth(setting: Setting): Promise<Answer> {
  const used = () => -freeMiB();
  return await opened(setting, { slots: setting.maxRows, prefillChunk: 512 }, async (runner) => {
    const loaded = used();
    const growth: Record<string, number> = {};
    for (const [at, rows] of [setting.maxRows, ...batchesUpTo(setting.maxRows)].entries()) {
      await decodeRows(runner, rows, 8);
      growth[`${at}: ${rows} rows`] = used() - loaded;
    }
    return growth;
  });
}

/** Milliseconds of a decode step with its copies. A graph must have the bits of ordinary runs. */
async function graphTimes(setting: Setting): Promise<Answer> {
  const answer: Record<string, number> = {};
  for (const graphs of [false, true]) {
    const size = { slots: setting.maxRows, prefillChunk: 512, graphs };
    await opened(setting, size, async (runner) => {
      for (const rows of [1, 8, 32, 128].filter((count) => count <= setting.maxRows)) {
        const whole = changedRunner(runner, { sparse: null });
        answer[`${rows} rows, ${graphs ? 'graph' : 'ordinary'}`] = await stepMs(setting, whole, rows, PROMPT);
      }
    });
  }
  return answer;
}

async function tokensOfSparseRows(setting: Setting): Promise<Answer> {
  const kernel = new SimdKernel(SPARSE_THREADS, ordinaryBuffer);
  const size = { slots: Math.min(32, setting.maxRows), prefillChunk: 512, graphs: true };
  const allocateLogits = (length: number) => kernel.allocate(length);
  return await opened(setting, { ...size, allocateLogits }, (runner) => sparseTokens(runner, kernel));
}

/** Milliseconds to compute positions and to bring their KV to the host and back. */
async function storeTimes(setting: Setting): Promise<Answer> {
  return await opened(setting, { slots: 1, prefillChunk: 512 }, async (runner) => {
    const { kvBytes } = runner;
    const prompt = promptOf(Math.min(PROMPT, runner.shape.contextLength - 1), runner);
    const bytes = new Uint8Array(prompt.length * kvBytes.positionBytes);
    await prefill(runner, 0, prompt);
    const computed = await timed(setting, () => prefill(runner, 0, prompt));
    kvBytes.read(0, 0, prompt.length, bytes);
    const kept = await timed(setting, async () => kvBytes.read(0, 0, prompt.length, bytes));
    const restored = await timed(setting, async () => kvBytes.write(0, 0, [bytes]));
    return { positions: prompt.length, MiB: Math.round(bytes.length / MIB), computed, kept, restored };
  });
}
