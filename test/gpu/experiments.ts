import { spawnSync } from 'node:child_process';
import { decode, prefill } from '../../origin/hub/greedy.ts';
import type { DeviceSettings } from '../../origin/model/config/device.ts';
import { missingCudnn } from '../../origin/model/device/cuda-libraries.ts';
import { requireCuda, thisMachine } from '../../origin/model/device/device-choice.ts';
import type { ModelRunner } from '../../origin/model/model-runner.ts';
import { sameBits } from '../../origin/model/open/row-probe.ts';
import { openCudaDriver } from '../../origin/model/ort/cuda-driver.ts';
import { type OrtApi, openOrtApi } from '../../origin/model/ort/ort-capi.ts';
import type { OrtDevice } from '../../origin/model/ort/ort-device.ts';
import { ordinaryBuffer } from '../../origin/model/ort/ort-library.ts';
import type { AllocateLogits } from '../../origin/model/runner/runner-options.ts';
import { SimdKernel } from '../../origin/sampling/kernel/simd-kernel.ts';
import { median } from '../bench/statistics.ts';
import { deviceRunnerOn } from './runners.ts';
import { prefixGains } from './served-rates.ts';
import { SPARSE_THREADS, sparseTokens } from './sparse-tokens.ts';

/** Questions that only a card can answer. Each gives numbers by name, or the error that it ended with. */

export type Answer = Readonly<Record<string, number | string>>;
export type Answers = Readonly<Record<string, Answer>>;

export interface Setting {
  readonly provider: 'cpu' | 'cuda';
  readonly device: DeviceSettings;
  readonly directory: string;
  readonly maxRows: number;
  /** Milliseconds, monotonic. */
  readonly now: () => number;
}

const CONTEXT = 1100;
const PROMPT = 1024;
const CHUNKS = [32, 64, 128, 256, 512, 1024];
const PLAN_LENGTHS = 32;
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
  const experiments: Readonly<Record<string, () => Promise<Answer>>> = {
    'prefill tokens/s by chunk': () => prefillRates(setting),
    'device memory in MiB by batch, up and down': () => arenaGrowth(setting),
    'first and second prefill of 1 to 32 tokens in ms, by sdpa_kernel': () => planTimes(setting),
    'decode step in ms, with CUDA graphs and without': () => graphTimes(setting),
    'tokens from sparse rows against those from whole rows': () => tokensOfSparseRows(setting),
    'prompts sent before, with a prefix store and without': () => prefixGains(setting),
    'KV of a prompt: computed, kept in main memory and restored, in ms': () => storeTimes(setting),
    'rows of a batch against the row alone': () => rowsInBatches(setting),
    'attention kernels': async () => attentionKernels(setting),
  };
  const answers: Record<string, Answer> = {};
  for (const [question, run] of Object.entries(experiments)) {
    if (!words.some((word) => question.includes(word))) continue;
    try {
      answers[question] = await run();
    } catch (error) {
      answers[question] = { error: (error as Error).message };
    }
    onAnswers(answers);
  }
  return answers;
}

const device = ({ provider }: Pick<Setting, 'provider'>, graphs: boolean): OrtDevice =>
  provider === 'cuda' ? { provider, deviceId: 0, memoryBytes: null, graphs } : { provider };

/** Maps the libraries, which ONNX Runtime then finds by name. */
function requireLibraries({ enable_cudnn }: Changes): void {
  const machine = thisMachine();
  requireCuda(0, machine);
  const missing = enable_cudnn === '1' ? missingCudnn(machine.cuda) : null;
  if (missing !== null) throw new Error(`${missing}; run npx continuo cuda-install --cudnn`);
}

/** Returns the API with other options of the CUDA provider. */
function withCudaOptions(api: OrtApi, changes: Changes): OrtApi {
  const update: OrtApi['UpdateCudaOptions'] = (options, keys, values) => {
    const merged = { ...Object.fromEntries(keys.map((key, at) => [key, values[at]!])), ...changes };
    const names = Object.keys(merged);
    return api.UpdateCudaOptions(options, names, Object.values(merged), names.length);
  };
  return { ...api, UpdateCudaOptions: update };
}

type Changes = Readonly<Record<string, string>>;

interface Opened {
  readonly slots: number;
  readonly prefillChunk: number;
  readonly changes?: Changes;
  readonly graphs?: boolean;
  readonly allocateLogits?: AllocateLogits;
}

export async function opened<T>(
  setting: Pick<Setting, 'provider' | 'directory'>,
  { slots, prefillChunk, changes = {}, graphs = false, allocateLogits }: Opened,
  use: (runner: ModelRunner) => Promise<T>,
): Promise<T> {
  if (setting.provider === 'cuda') requireLibraries(changes);
  const api = withCudaOptions(openOrtApi(), changes);
  const options = { slots, prefillChunk };
  const runner = deviceRunnerOn(device(setting, graphs), setting.directory, options, api, {
    maxContext: CONTEXT,
    allocateLogits,
  });
  try {
    return await use(runner);
  } finally {
    runner.dispose();
  }
}

export const promptOf = (length: number, { shape }: ModelRunner) =>
  Array.from({ length }, (_, at) => (at * 31 + 7) % shape.vocabularySize);

async function timed({ now }: Setting, run: () => Promise<unknown>): Promise<number> {
  const start = now();
  await run();
  return now() - start;
}

async function prefillRates(setting: Setting): Promise<Answer> {
  const rates: Record<string, number> = {};
  for (const prefillChunk of CHUNKS) {
    await opened(setting, { slots: 1, prefillChunk }, async (runner) => {
      const prompt = promptOf(Math.min(PROMPT, runner.shape.contextLength - 1), runner);
      await prefill(runner, 0, prompt);
      const times: number[] = [];
      for (let run = 0; run < 3; run++) times.push(await timed(setting, () => prefill(runner, 0, prompt)));
      rates[prefillChunk] = Math.round((1000 * prompt.length) / median(times));
    });
  }
  return rates;
}

export const decodeRows = (runner: ModelRunner, rows: number, position: number) => {
  const row = { token: 5, position };
  return decode(runner, 0, Array<typeof row>(rows).fill(row), () => position);
};

function batchesUpTo(maxRows: number): number[] {
  const up = Array.from({ length: 8 }, (_, power) => 2 ** power).filter((rows) => rows <= maxRows);
  return [...up, ...up.toReversed()];
}

/** The arena must not grow after the first, largest batch. */
async function arenaGrowth(setting: Setting): Promise<Answer> {
  const used = () => {
    const { freeBytes } = openCudaDriver();
    return -Math.round(freeBytes(0) / MIB);
  };
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

async function planTimes(setting: Setting): Promise<Answer> {
  const times: Record<string, number> = {};
  for (const sdpa_kernel of ['0', '3']) {
    const changes = { sdpa_kernel, ...(sdpa_kernel === '0' && { enable_cudnn: '1' }) };
    await opened(setting, { slots: 1, prefillChunk: PLAN_LENGTHS, changes }, async (runner) => {
      for (const round of ['first', 'second']) {
        const ms = await timed(setting, async () => {
          for (let length = 1; length <= PLAN_LENGTHS; length++)
            await prefill(runner, 0, promptOf(length, runner));
        });
        times[`${round}, sdpa_kernel ${sdpa_kernel}`] = Math.round(ms);
      }
    });
  }
  return times;
}

/** Milliseconds of a decode step with its copies. A graph must have the bits of ordinary runs, or its runner does not start. */
async function graphTimes(setting: Setting): Promise<Answer> {
  const answer: Record<string, number> = {};
  for (const graphs of [false, true]) {
    const size = { slots: setting.maxRows, prefillChunk: 512, graphs };
    await opened(setting, size, async (runner) => {
      for (const rows of [1, 8, 32, 128].filter((count) => count <= setting.maxRows)) {
        const tokens = new Int32Array(rows);
        const times: number[] = [];
        for (let step = 0; step < GRAPH_STEPS; step++) {
          const positions = new Int32Array(rows).fill(PROMPT + step);
          times.push(
            await timed(setting, async () => runner.decode({ firstSlot: 0, rows, tokens, positions })),
          );
        }
        answer[`${rows} rows, ${graphs ? 'graph' : 'ordinary'}`] = Number(median(times.slice(5)).toFixed(3));
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

/** Milliseconds to compute positions, and to bring their KV to the host and back, as the prefix store does. */
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

/** Runs a prompt of 33 tokens and two rows in a process of its own, which prints the kernels. */
function attentionKernels({ provider, directory }: Setting): Answer {
  const program = new URL('./one-run.ts', import.meta.url).pathname;
  const args = [program, JSON.stringify({ provider, directory })];
  const env = { ...process.env, ORT_ENABLE_ATTENTION_KERNEL_DEBUG_INFO: '1' };
  const { stdout, stderr, status, signal } = spawnSync(process.execPath, args, { env, encoding: 'utf8' });
  if (status !== 0) throw new Error(signal ?? stderr.trim().split('\n').at(-1) ?? `exit code ${status}`);
  const kinds = [...new Set(stdout.split('\n').filter((line) => line.trim() !== ''))];
  return Object.fromEntries(kinds.slice(0, 20).map((line, at) => [`${at}`, line.slice(0, 300)]));
}

/** Compares a row of batches with the same row computed alone. */
async function rowsInBatches(setting: Setting): Promise<Answer> {
  const { maxRows } = setting;
  return await opened(setting, { slots: maxRows, prefillChunk: 512 }, async (runner) => {
    const prompt = promptOf(100, runner);
    await prefill(runner, 0, prompt);
    for (let slot = 1; slot < maxRows; slot++) runner.copy(0, slot, prompt.length);
    const [alone] = await decodeRows(runner, 1, prompt.length);
    const answer: Record<string, string> = {};
    for (const rows of [1, 8, 32, 128].filter((count) => count <= maxRows)) {
      const batch = await decodeRows(runner, rows, prompt.length);
      const worst = Math.max(...batch.map((logits) => largestDifference(logits, alone!)));
      answer[rows] = batch.every((logits) => sameBits(logits, alone!)) ? 'same bits' : `differs by ${worst}`;
    }
    return answer;
  });
}

const largestDifference = (one: Float32Array, other: Float32Array): number =>
  one.reduce((most, value, at) => Math.max(most, Math.abs(value - other[at]!)), 0);
