import { spawnSync } from 'node:child_process';
import { decode, prefill } from '../../origin/hub/greedy.ts';
import type { ModelRunner } from '../../origin/model/model-runner.ts';
import { openCudaDriver } from '../../origin/model/ort/cuda-driver.ts';
import { type OrtApi, openOrtApi } from '../../origin/model/ort/ort-capi.ts';
import type { OrtDevice } from '../../origin/model/ort/ort-device.ts';
import { median } from '../bench/statistics.ts';
import { deviceRunnerOn } from './runners.ts';

/** Questions that only a card can answer. Each gives numbers by name, or the error that it ended with. */

export type Answer = Readonly<Record<string, number | string>>;
export type Answers = Readonly<Record<string, Answer>>;

export interface Setting {
  readonly provider: 'cpu' | 'cuda';
  readonly directory: string;
  readonly maxRows: number;
  /** Milliseconds, monotonic. */
  readonly now: () => number;
}

const CONTEXT = 1100;
const PROMPT = 1024;
const CHUNKS = [32, 64, 128, 256, 512, 1024];
const PLAN_LENGTHS = 32;
const MIB = 2 ** 20;

export async function runExperiments(setting: Setting): Promise<Answers> {
  const experiments: Readonly<Record<string, () => Promise<Answer>>> = {
    'prefill tokens/s by chunk': () => prefillRates(setting),
    'device memory in MiB by batch, up and down': () => arenaGrowth(setting),
    'first and second prefill of 1 to 32 tokens in ms, by sdpa_kernel': () => planTimes(setting),
    'decode ms with enable_cuda_graph': () => graphCapture(setting),
    'attention kernels': async () => attentionKernels(setting),
  };
  const answers: Record<string, Answer> = {};
  for (const [question, run] of Object.entries(experiments)) {
    try {
      answers[question] = await run();
    } catch (error) {
      answers[question] = { error: (error as Error).message };
    }
  }
  return answers;
}

const device = ({ provider }: Setting): OrtDevice =>
  provider === 'cuda' ? { provider, deviceId: 0, memoryBytes: null } : { provider };

/** Returns the API with other options of the CUDA provider. */
function withCudaOptions(api: OrtApi, changes: Readonly<Record<string, string>>): OrtApi {
  const update: OrtApi['UpdateCudaOptions'] = (options, keys, values) => {
    const merged = { ...Object.fromEntries(keys.map((key, at) => [key, values[at]!])), ...changes };
    const names = Object.keys(merged);
    return api.UpdateCudaOptions(options, names, Object.values(merged), names.length);
  };
  return { ...api, UpdateCudaOptions: update };
}

interface Opened {
  readonly slots: number;
  readonly prefillChunk: number;
  readonly changes?: Readonly<Record<string, string>>;
}

async function opened<T>(
  setting: Setting,
  { slots, prefillChunk, changes = {} }: Opened,
  use: (runner: ModelRunner) => Promise<T>,
): Promise<T> {
  const api = withCudaOptions(openOrtApi(), changes);
  const options = { slots, prefillChunk };
  const runner = deviceRunnerOn(device(setting), setting.directory, options, api, false, CONTEXT);
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

/** ONNX Runtime refuses graphs that copy between CPU and device. */
async function graphCapture(setting: Setting): Promise<Answer> {
  const times: Record<string, number> = {};
  for (const enable_cuda_graph of ['0', '1']) {
    const changes = { enable_cuda_graph };
    await opened(setting, { slots: 1, prefillChunk: 32, changes }, async (runner) => {
      const steps: number[] = [];
      for (let step = 0; step < 20; step++) steps.push(await timed(setting, () => decodeRows(runner, 1, 8)));
      times[enable_cuda_graph] = Number(median(steps.slice(5)).toFixed(2));
    });
  }
  return times;
}

/** Runs this file in a process whose ONNX Runtime prints the kernel of each attention. */
function attentionKernels({ provider, directory }: Setting): Answer {
  const env = { ...process.env, ORT_ENABLE_ATTENTION_KERNEL_DEBUG_INFO: '1' };
  const args = [import.meta.filename, provider, directory];
  const { stdout, stderr, status } = spawnSync(process.execPath, args, { env, encoding: 'utf8' });
  if (status !== 0) throw new Error(stderr.trim().split('\n').at(-1) ?? `exit code ${status}`);
  const lines = stdout.split('\n').filter((line) => line.trim() !== '');
  return Object.fromEntries(
    [...new Set(lines)].slice(0, 20).map((line, at) => [`${at}`, line.slice(0, 300)]),
  );
}

if (process.argv[1] === import.meta.filename) {
  const [provider, directory] = process.argv.slice(2);
  const setting = {
    provider: provider === 'cuda' ? 'cuda' : 'cpu',
    directory: directory ?? '',
    maxRows: 2,
    now: () => 0,
  } as const;
  await opened(setting, { slots: 2, prefillChunk: 33 }, async (runner) => {
    await prefill(runner, 0, promptOf(33, runner));
    await decodeRows(runner, 2, 8);
  });
}
