import { setImmediate } from 'node:timers/promises';
import type { DeviceTurns } from '../../process/engine-locks.ts';
import { RunTerminated } from '../model-runner.ts';
import { boundTo, type Pointer, type RunBinding, type RunSession } from './bound-tensors.ts';
import { OrtBinding } from './ort-binding.ts';
import type { OrtApi } from './ort-capi.ts';
import { appendProvider, type OrtDevice, OrtDeviceMemory } from './ort-device.ts';
import { returnFreeMemory } from './ort-library.ts';
import { hasVnni } from './vnni.ts';

export interface SessionOptions {
  /** Threads of one run, including the calling one. */
  readonly threads: number;
  /** Folder of external data files. */
  readonly directory: string;
  /** Whether threads spin between the operators of a run; default true. */
  readonly spins?: boolean;
  /** Absent = the CPU. */
  readonly device?: OrtDevice;
  /** Of a device that several engines share; the API's calls are made in them. */
  readonly turns?: DeviceTurns | undefined;
}

const LOG_FATAL = 4;
const ALL_OPTIMIZATIONS = 99;
const CPU_ARENA_ALLOCATOR = 1;
const DEFAULT_MEMORY = 0;
/** Run option of the CUDA provider: the number of the graph that a run captures or replays. */
const GRAPH_ID = 'gpu_graph_id';
const NO_GRAPH = '-1';
/** Then threads sleep. The engine's own part of a step takes 40 to 90 µs. */
const SPIN_MICROSECONDS = '100';
/** Run option: the call returns when the card has been given the run. */
const WITHOUT_WAIT = 'disable_synchronize_execution_providers';

const CPU_DEVICE: OrtDevice = { provider: 'cpu' };

/**
 * A loaded model. `dispose` releases all handles, and the device's stream. It must not be called during a
 * run.
 */
export class OrtSession {
  readonly api: OrtApi;
  readonly device: OrtDevice;
  readonly turns: DeviceTurns | undefined;
  readonly #environment: Pointer;
  readonly #memory: Pointer;
  readonly #session: Pointer;
  readonly #runOptions: Pointer;
  /** By number of the graph, and whether the run is waited for. */
  readonly #optionsOfRuns = new Map<string, Pointer>();

  /** @throws Error with ONNX Runtime's message if it refuses the model */
  constructor(api: OrtApi, model: Uint8Array, options: SessionOptions) {
    this.api = api;
    this.device = options.device ?? CPU_DEVICE;
    this.turns = options.turns;
    // At lower levels ONNX Runtime reports every terminated run on stderr. Errors reach the caller as
    // exceptions.
    this.#environment = api.CreateEnv(LOG_FATAL, 'continuo');
    this.#memory = api.CreateCpuMemoryInfo(CPU_ARENA_ALLOCATOR, DEFAULT_MEMORY);
    this.#runOptions = api.CreateRunOptions();
    if (this.capturesGraphs) api.AddRunConfigEntry(this.#runOptions, GRAPH_ID, NO_GRAPH);
    const sessionOptions = createSessionOptions(api, options);
    try {
      appendProvider(api, sessionOptions, this.device);
      this.#session = api.CreateSessionFromArray(
        this.#environment,
        api.addressOf(model),
        model.length,
        sessionOptions,
      );
    } catch (error) {
      this.#releaseShared();
      throw error;
    } finally {
      api.ReleaseSessionOptions(sessionOptions);
    }
  }

  /** True if inputs are copied when they are bound instead of being read during the run. */
  get copiesInputs(): boolean {
    return this.device.provider !== 'cpu';
  }

  get capturesGraphs(): boolean {
    return this.device.provider === 'cuda' && this.device.graphs === true;
  }

  /** Returns ONNX Runtime's name of the memory of each input, in graph order. */
  inputMemories(inputs: number): string[] {
    const infos = new BigInt64Array(inputs);
    this.api.SessionGetMemoryInfoForInputs(this.#session, infos, inputs);
    return Array.from(infos, (info) => this.api.MemoryInfoGetName(info));
  }

  createDeviceMemory(): OrtDeviceMemory {
    return new OrtDeviceMemory(this.api, this.#session, this.device);
  }

  /** Returns the session with another `dispose`, for runners that share it or own more than it. */
  lend(dispose: () => void): RunSession {
    const { api, copiesInputs } = this;
    return {
      api,
      copiesInputs,
      bound: (bind) => this.bound(bind),
      run: (binding) => this.run(binding as OrtBinding),
      runAsync: (binding, signal) => this.runAsync(binding as OrtBinding, signal),
      dispose,
    };
  }

  createBinding(): OrtBinding {
    return new OrtBinding(this.api, this.#session, this.#memory);
  }

  /** Creates a binding and binds its tensors. If one fails, the binding is disposed. */
  bound(bind: (binding: RunBinding) => void): OrtBinding {
    return boundTo(this.createBinding(), bind);
  }

  /** Runs on the calling thread. */
  run(binding: OrtBinding): void {
    const options = this.capturesGraphs ? this.#runOptions : null;
    this.api.RunWithBinding(this.#session, options, binding.handle);
  }

  /**
   * Returns when the run has begun on the device's stream. All that is bound must be memory of the device
   * that stays until the end of the run, or main memory that the device does not read.
   */
  begin(binding: OrtBinding): void {
    this.api.RunWithBinding(this.#session, this.#optionsFor(NO_GRAPH, false), binding.handle);
  }

  /**
   * Runs as the graph of this number (1 …): the first runs are ordinary ones, then ONNX Runtime captures the
   * graph and replays it. All runs of a number must have the same binding and the same thread. Other sessions
   * run as always.
   * @param waits false = returns when the run has begun on the device's stream; only for captured graphs
   */
  runGraph(binding: OrtBinding, graph: number, waits = true): void {
    this.api.RunWithBinding(this.#session, this.#optionsFor(String(graph), waits), binding.handle);
  }

  #optionsFor(graph: string, waits: boolean): Pointer {
    const key = `${graph} ${waits}`;
    const cached = this.#optionsOfRuns.get(key);
    if (cached !== undefined) return cached;
    const options = this.api.CreateRunOptions();
    this.api.AddRunConfigEntry(options, GRAPH_ID, graph);
    if (!waits) this.api.AddRunConfigEntry(options, WITHOUT_WAIT, '1');
    this.#optionsOfRuns.set(key, options);
    return options;
  }

  /**
   * Runs on a pool thread and stops within one operator when `signal` is aborted. Only one such run at a
   * time. On devices it runs on the calling thread: ONNX Runtime keeps handles and workspaces per thread
   * there, and a chunk takes milliseconds.
   * @throws RunTerminated if the signal was aborted before the run, or stopped it
   */
  async runAsync(binding: OrtBinding, signal: AbortSignal): Promise<void> {
    if (signal.aborted) throw new RunTerminated('the run was cancelled before it started');
    if (this.copiesInputs) {
      this.run(binding);
      // Messages that arrived meanwhile are handled before the next run.
      await setImmediate();
      return;
    }
    this.api.RunOptionsUnsetTerminate(this.#runOptions);
    const terminate = () => this.api.RunOptionsSetTerminate(this.#runOptions);
    signal.addEventListener('abort', terminate);
    try {
      await this.api.runWithBindingAsync(this.#session, this.#runOptions, binding.handle);
    } catch (error) {
      throw signal.aborted ? new RunTerminated('the run was cancelled') : error;
    } finally {
      signal.removeEventListener('abort', terminate);
    }
  }

  /** Call after all bindings are disposed. */
  dispose(): void {
    this.api.ReleaseSession(this.#session);
    this.#releaseShared();
  }

  #releaseShared(): void {
    for (const options of this.#optionsOfRuns.values()) this.api.ReleaseRunOptions(options);
    this.api.ReleaseRunOptions(this.#runOptions);
    this.api.ReleaseMemoryInfo(this.#memory);
    this.api.ReleaseEnv(this.#environment);
    if (this.device.provider === 'cuda') this.device.stream?.dispose();
    returnFreeMemory();
  }
}

function createSessionOptions(api: OrtApi, { threads, directory, spins = true }: SessionOptions): Pointer {
  const options = api.CreateSessionOptions();
  api.SetIntraOpNumThreads(options, threads);
  api.SetSessionGraphOptimizationLevel(options, ALL_OPTIMIZATIONS);
  // Memory patterns are cached per combination of input shapes, so the cache would grow with every batch and
  // length.
  api.DisableMemPattern(options);
  // Threads spin between the operators of a run: up to 45 % faster at small batches. They also spin until the
  // next decode run of a few streams, because to wake one takes a sixth of a run of one row.
  api.AddSessionConfigEntry(options, 'session.intra_op.spin_duration_us', SPIN_MICROSECONDS);
  // Without VNNI, products of unsigned and signed bytes are summed in 16 bits, which overflow. This makes
  // both unsigned. Where it is not needed, it triples the time of prompts.
  if (hasVnni() !== true) api.AddSessionConfigEntry(options, 'session.x64quantprecision', '1');
  if (!spins) api.AddSessionConfigEntry(options, 'session.intra_op.allow_spinning', '0');
  // A model loaded from memory has no path to find its external data.
  api.AddSessionConfigEntry(options, 'session.model_external_initializers_file_folder_path', directory);
  return options;
}
