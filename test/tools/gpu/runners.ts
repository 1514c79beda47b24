import koffi from 'koffi';
import { readModelConfig } from '../../../origin/model/config/model-config.ts';
import { textsOf } from '../../../origin/model/config/model-directory.ts';
import { findDecoder } from '../../../origin/model/config/model-files.ts';
import { describeDecoder } from '../../../origin/model/decoder/decoder-interface.ts';
import { patchDecoder } from '../../../origin/model/foreign/patch-decoder.ts';
import type { ModelRunner } from '../../../origin/model/model-runner.ts';
import { openModel } from '../../../origin/model/open/open-model.ts';
import { openCudaDriver } from '../../../origin/model/ort/cuda-driver.ts';
import type { CudaStream } from '../../../origin/model/ort/cuda-stream.ts';
import { readGraphFile } from '../../../origin/model/ort/graph-file.ts';
import { type OrtApi, openOrtApi } from '../../../origin/model/ort/ort-capi.ts';
import type { OrtDevice } from '../../../origin/model/ort/ort-device.ts';
import { openLibrary } from '../../../origin/model/ort/ort-library.ts';
import { OrtSession } from '../../../origin/model/ort/ort-session.ts';
import { CudaKvCopier } from '../../../origin/model/runner/device/cuda-kv-copier.ts';
import { type DeviceWays, deviceRunner } from '../../../origin/model/runner/device/device-runner.ts';
import { GraphRunner } from '../../../origin/model/runner/device/graph-runner.ts';
import { kvLayout } from '../../../origin/model/runner/kv-cache.ts';
import type { AllocateLogits } from '../../../origin/model/runner/runner-options.ts';
import { buildFakeCudaDriver, hasCompiler } from '../../support/fake-cuda-driver.ts';
import type { SyntheticModel } from '../../support/synthetic/synthetic-model.ts';
import { providersAtHand } from './providers.ts';

export interface RunnerOptions {
  readonly slots: number;
  readonly prefillChunk: number;
}

/** What a network computes with. */
export type Numbers = Pick<SyntheticModel, 'precision'> & Partial<Pick<SyntheticModel, 'kv' | 'kvScales'>>;

/** A configuration of the runner, with the tolerance of its logits against float64. */
export interface RunnerCase extends Numbers {
  readonly name: string;
  /** Why this machine cannot run it; null = it can. */
  readonly absent: string | null;
  readonly tolerance: number;
  open(directory: string, options: RunnerOptions): Promise<ModelRunner>;
}

const FLOAT32 = { precision: 'float32', tolerance: 2e-5 } as const;
/** Two units in the last place between 4 and 8, where small networks have their largest logits. */
const LAST_PLACES = { float32: 2e-5, float16: 2 ** -7, bfloat16: 2 ** -4 } as const;
/**
 * A rounding of keys in 16 bits moves some of the cache to the next level of 8 bits. The reference rounds to
 * the same levels, so that this is far below what the cache itself loses.
 */
const NEXT_LEVELS = { 'as-precision': 0, int8: 2 ** -7, float8e4m3fn: 2 ** -6 } as const;

/** The same runner for networks of other numbers. */
export function withNumbers(runner: RunnerCase, numbers: Numbers): RunnerCase {
  const { precision, kv = 'as-precision' } = numbers;
  const levels = precision === 'float32' ? 0 : NEXT_LEVELS[kv];
  return { ...runner, ...numbers, tolerance: LAST_PLACES[precision] + levels };
}

/** CUDA's GroupQueryAttention has no float32. */
const FLOAT16 = { precision: 'float16', tolerance: LAST_PLACES.float16 } as const;

/**
 * All providers. The two layouts of a device's KV cache also run in the CPU's memory, which tests their
 * bookkeeping on machines without a device, and the copies of CUDA run with a driver whose card is that
 * memory.
 */
export function runnerCases(): RunnerCase[] {
  const providers = providersAtHand().map(({ device, provider, absent }) => ({
    name: provider,
    absent,
    ...(provider === 'cuda' ? FLOAT16 : FLOAT32),
    open: async (directory: string, options: RunnerOptions) =>
      (await openModel({ directory, threads: 2, kvLimitBytes: null, device, ...options })).runner,
  }));
  const onCpu = (name: string, staged: boolean): RunnerCase => ({
    name,
    absent: null,
    ...FLOAT32,
    open: async (directory, options) => cpuDeviceRunner(directory, options, staged),
  });
  return [
    ...providers,
    onCpu('cpu, runs bound to parts of buffers', false),
    onCpu('cpu, runs bound to whole buffers', true),
    {
      ...onCpu('cpu, KV, inputs and logits copied by a CUDA driver', false),
      absent: hasCompiler ? null : 'there is no C compiler',
      open: async (directory, options) => driverRunner(directory, options, buildFakeCudaDriver().file),
    },
  ];
}

/** Runs on the CPU as on CUDA: the driver copies, and batches have the rows of graphs. */
export function driverRunner(
  directory: string,
  options: RunnerOptions,
  file: string,
  api = openOrtApi(),
  allocateLogits?: AllocateLogits,
  captures = true,
): ModelRunner {
  const copies = () => openCudaDriver(file).copies(0);
  const ways = {
    staged: false,
    scores: true,
    openCopier: () => new CudaKvCopier(copies()),
    openCopies: copies,
    sharesStream: false,
  };
  return deviceRunnerOn({ provider: 'cpu' }, directory, options, api, { ways, allocateLogits, captures });
}

/**
 * As `driverRunner`, but runs that need no wait are computed when their stream is waited for.
 * @param isOrdered false = runs are not on the stream of copies and kernels, as they should be
 */
export function lateRunner(
  directory: string,
  options: RunnerOptions,
  file: string,
  { allocateLogits, isOrdered = true }: { allocateLogits?: AllocateLogits; isOrdered?: boolean } = {},
): ModelRunner {
  const driver = openCudaDriver(file);
  const stream = driver.stream(0);
  const copies = () => driver.copies(0);
  const ways = {
    staged: false,
    scores: true,
    openCopier: () => new CudaKvCopier(copies()),
    openCopies: () => driver.copies(0, undefined, stream),
    sharesStream: true,
  };
  const api = lateApi(file, isOrdered ? stream : driver.stream(0));
  return deviceRunnerOn({ provider: 'cpu' }, directory, options, api, { ways, allocateLogits });
}

/** Gives runs that need no wait to the stream of the driver. Others run when it has done its work. */
function lateApi(file: string, stream: CudaStream): OrtApi {
  const real = openOrtApi();
  const library = openLibrary(file);
  const callback = koffi.pointer(koffi.proto('void(void *)'));
  const launch = library.func('cuLaunchHostFunc', 'int', ['void *', callback, 'void *']);
  const late = new Set<bigint | null>();
  return {
    ...real,
    AddRunConfigEntry: (options, key, value) => {
      if (key === 'disable_synchronize_execution_providers') late.add(options);
      return real.AddRunConfigEntry(options, key, value);
    },
    RunWithBinding: (session, options, binding) => {
      if (!late.has(options)) {
        stream.inContext(() => stream.wait());
        return real.RunWithBinding(session, options, binding);
      }
      const run = koffi.register(() => {
        real.RunWithBinding(session, options, binding);
        setImmediate(() => koffi.unregister(run));
      }, callback);
      if (launch(stream.handle, run, null) !== 0) throw new Error('the stream takes no run');
      return undefined;
    },
  };
}

/** Returns a runner that does some things otherwise. It does not dispose the other one. */
export const changedRunner = (runner: ModelRunner, changes: Partial<ModelRunner>): ModelRunner => ({
  shape: runner.shape,
  kvBytes: runner.kvBytes,
  sparse: runner.sparse ?? null,
  get runsAhead() {
    return runner.runsAhead ?? false;
  },
  hasBegun: (row) => runner.hasBegun?.(row) ?? false,
  beginPrefill: (chunks) => runner.beginPrefill?.(chunks) ?? null,
  decode: (batch) => runner.decode(batch),
  prefill: (chunk, signal) => runner.prefill(chunk, signal),
  ...(runner.prefillTogether && { prefillTogether: (...args) => runner.prefillTogether!(...args) }),
  ...(runner.score && { score: (...args) => runner.score!(...args) }),
  copy: (...args) => runner.copy(...args),
  dispose: () => {},
  ...changes,
});

/** Without CUDA graphs. */
const withoutGraphs = (staged: boolean): Partial<DeviceWays> => ({ staged, openCopies: () => null });

/** @param api counts native objects in some tests */
export const cpuDeviceRunner = (
  directory: string,
  options: RunnerOptions,
  staged: boolean,
  api = openOrtApi(),
): ModelRunner =>
  deviceRunnerOn({ provider: 'cpu' }, directory, options, api, { ways: withoutGraphs(staged) });

interface DeviceRunnerOptions {
  readonly maxContext?: number;
  readonly ways?: Partial<DeviceWays>;
  readonly allocateLogits?: AllocateLogits | undefined;
  /** Default: true. A capture overwrites KV. */
  readonly captures?: boolean;
}

/** Of models without a limit of their own. */
const MAX_CONTEXT = 65_536;

/** Opens a model as the origin does on a device, but with this API and without probes. */
export function deviceRunnerOn(
  device: OrtDevice,
  directory: string,
  { slots, prefillChunk }: RunnerOptions,
  api: OrtApi,
  { maxContext = MAX_CONTEXT, ways, allocateLogits, captures = true }: DeviceRunnerOptions = {},
): ModelRunner {
  const { file: name, names } = findDecoder(directory);
  const file = readGraphFile(directory, name);
  const decoder = describeDecoder(file.graph, readModelConfig(textsOf(directory)), names);
  const { model, logits } = patchDecoder(file, decoder);
  const session = new OrtSession(api, model, { threads: 1, directory: file.folder, device });
  const layout = kvLayout(decoder, slots, Math.min(decoder.maxPositions, maxContext));
  const runner = deviceRunner(session, { decoder, logits, layout, prefillChunk, allocateLogits }, ways);
  if (captures && runner instanceof GraphRunner) runner.capture();
  return runner;
}
