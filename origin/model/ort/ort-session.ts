import { RunTerminated } from '../model-runner.ts';
import { OrtBinding } from './ort-binding.ts';
import type { OrtApi, Pointer } from './ort-capi.ts';
import { appendProvider, type OrtDevice, OrtDeviceMemory } from './ort-device.ts';

export interface SessionOptions {
  /** Threads of one run, the calling one included. */
  readonly threads: number;
  /** Folder of the model's external data files. */
  readonly directory: string;
  /** Whether threads spin between the operators of a run; true unless given. */
  readonly spins?: boolean;
  /** The CPU when absent. */
  readonly device?: OrtDevice;
}

const LOG_FATAL = 4;
const ALL_OPTIMISATIONS = 99;
const CPU_ARENA_ALLOCATOR = 1;
const DEFAULT_MEMORY = 0;

const CPU_DEVICE: OrtDevice = { provider: 'cpu' };

/** What a runner needs of a session. */
export type RunSession = Pick<OrtSession, 'api' | 'copiesInputs' | 'bound' | 'run' | 'runAsync' | 'dispose'>;

/** One loaded model. All handles are released by `dispose`, which must not be called during a run. */
export class OrtSession {
  readonly api: OrtApi;
  readonly device: OrtDevice;
  readonly #environment: Pointer;
  readonly #memory: Pointer;
  readonly #session: Pointer;
  readonly #runOptions: Pointer;

  /** Throws an Error with ONNX Runtime's message when it refuses the model. */
  constructor(api: OrtApi, model: Uint8Array, options: SessionOptions) {
    this.api = api;
    this.device = options.device ?? CPU_DEVICE;
    // Below fatal, ONNX Runtime would report every terminated run on stderr; errors reach the caller as exceptions.
    this.#environment = api.CreateEnv(LOG_FATAL, 'continuo');
    this.#memory = api.CreateCpuMemoryInfo(CPU_ARENA_ALLOCATOR, DEFAULT_MEMORY);
    this.#runOptions = api.CreateRunOptions();
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

  /** Whether inputs are copied when they are bound, and not read where they are when the session runs. */
  get copiesInputs(): boolean {
    return this.device.provider !== 'cpu';
  }

  /** ONNX Runtime's name of the memory that each of the session's inputs is read from, in the graph's order. */
  inputMemories(inputs: number): string[] {
    const infos = new BigInt64Array(inputs);
    this.api.SessionGetMemoryInfoForInputs(this.#session, infos, inputs);
    return Array.from(infos, (info) => this.api.MemoryInfoGetName(info));
  }

  createDeviceMemory(): OrtDeviceMemory {
    return new OrtDeviceMemory(this.api, this.#session, this.device);
  }

  /** The session with another end of its use: for runners that share it, or own more than it. */
  lend(dispose: () => void): RunSession {
    const { api, copiesInputs } = this;
    return {
      api,
      copiesInputs,
      bound: (bind) => this.bound(bind),
      run: (binding) => this.run(binding),
      runAsync: (binding, signal) => this.runAsync(binding, signal),
      dispose,
    };
  }

  createBinding(): OrtBinding {
    return new OrtBinding(this.api, this.#session, this.#memory);
  }

  /** A binding with its tensors bound; where one of them cannot be, nothing is left behind. */
  bound(bind: (binding: OrtBinding) => void): OrtBinding {
    const binding = this.createBinding();
    try {
      bind(binding);
      return binding;
    } catch (error) {
      binding.dispose();
      throw error;
    }
  }

  /** Runs on the calling thread. */
  run(binding: OrtBinding): void {
    this.api.RunWithBinding(this.#session, null, binding.handle);
  }

  /**
   * Runs on a pool thread and stops within one operator when `signal` is aborted. One such run at a time.
   * @throws RunTerminated when the signal was aborted before or while it ran, even if it came to its end
   */
  async runAsync(binding: OrtBinding, signal: AbortSignal): Promise<void> {
    if (signal.aborted) throw new RunTerminated('the run was given up before it began');
    this.api.RunOptionsUnsetTerminate(this.#runOptions);
    const terminate = () => this.api.RunOptionsSetTerminate(this.#runOptions);
    signal.addEventListener('abort', terminate);
    try {
      await this.api.runWithBindingAsync(this.#session, this.#runOptions, binding.handle);
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      signal.removeEventListener('abort', terminate);
    }
    if (signal.aborted) throw new RunTerminated('the run was given up while it ran');
  }

  /** All bindings must have been disposed. */
  dispose(): void {
    this.api.ReleaseSession(this.#session);
    this.#releaseShared();
  }

  #releaseShared(): void {
    this.api.ReleaseRunOptions(this.#runOptions);
    this.api.ReleaseMemoryInfo(this.#memory);
    this.api.ReleaseEnv(this.#environment);
  }
}

function createSessionOptions(api: OrtApi, { threads, directory, spins = true }: SessionOptions): Pointer {
  const options = api.CreateSessionOptions();
  api.SetIntraOpNumThreads(options, threads);
  api.SetSessionGraphOptimizationLevel(options, ALL_OPTIMISATIONS);
  // Patterns are kept per combination of input shapes: a cache that would grow with every new batch and length.
  api.DisableMemPattern(options);
  // Threads spin between the operators of a run, which is worth up to 45 % at small batches, and sleep between runs.
  api.AddSessionConfigEntry(options, 'session.force_spinning_stop', '1');
  // Without it, products of 8 bits overflow on processors that lack VNNI: unsigned times signed, summed in 16 bits.
  api.AddSessionConfigEntry(options, 'session.x64quantprecision', '1');
  if (!spins) api.AddSessionConfigEntry(options, 'session.intra_op.allow_spinning', '0');
  // A model in memory has no path of its own to find its external data by.
  api.AddSessionConfigEntry(options, 'session.model_external_initializers_file_folder_path', directory);
  return options;
}
