import { decode, prefill } from '../../../origin/hub/greedy.ts';
import type { DeviceSettings } from '../../../origin/model/config/device.ts';
import { requireCuda, thisMachine } from '../../../origin/model/device/device-choice.ts';
import type { ModelRunner } from '../../../origin/model/model-runner.ts';
import { openCudaDriver } from '../../../origin/model/ort/cuda-driver.ts';
import { openOrtApi } from '../../../origin/model/ort/ort-capi.ts';
import type { OrtDevice } from '../../../origin/model/ort/ort-device.ts';
import { ordinaryBuffer } from '../../../origin/model/ort/ort-library.ts';
import type { AllocateLogits } from '../../../origin/model/runner/runner-options.ts';
import { SimdKernel } from '../../../origin/sampling/kernel/simd-kernel.ts';
import { median } from '../bench/statistics.ts';
import { deviceRunnerOn } from './runners.ts';
import { prefixGains } from './served-rates.ts';
import { SPARSE_THREADS, sparseTokens } from './sparse-tokens.ts';

/** Questions that only a card can answer. Each gives numbers by name, or the error that it ended with. */

export type Answer = Readonly<Record<string, number | string>>;
export type Answers = Readonly<Record<string, Answer>>;

export interface Setting {
  readonly provider: OrtDevice['provider'];
  readonly device: DeviceSettings;
  readonly directory: string;
  readonly maxRows: number;
  /** Milliseconds, monotonic. */
  readonly now: () => number;
}

const CONTEXT = 1100;
const PROMPT = 1024;
const CHUNKS = [32, 64, 128, 256, 512, 1024];
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
    'decode step in ms, with CUDA graphs and without': () => graphTimes(setting),
    'tokens from sparse rows against those from whole rows': () => tokensOfSparseRows(setting),
    'prompts sent before, with a prefix store and without': () => prefixGains(setting),
    'KV of a prompt: computed, kept in main memory and restored, in ms': () => storeTimes(setting),
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

interface Opened {
  readonly slots: number;
  readonly prefillChunk: number;
  readonly graphs?: boolean;
  readonly allocateLogits?: AllocateLogits;
}

async function opened<T>(
  setting: Setting,
  { slots, prefillChunk, graphs = false, allocateLogits }: Opened,
  use: (runner: ModelRunner) => Promise<T>,
): Promise<T> {
  // Maps the libraries, which ONNX Runtime then finds by name.
  if (setting.provider === 'cuda') requireCuda(0, thisMachine());
  const options = { slots, prefillChunk };
  const runner = deviceRunnerOn(device(setting, graphs), setting.directory, options, openOrtApi(), {
    maxContext: CONTEXT,
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

const decodeRows = (runner: ModelRunner, rows: number, position: number) => {
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

/** Milliseconds of a decode step with its copies. A graph must have the bits of ordinary runs. */
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
