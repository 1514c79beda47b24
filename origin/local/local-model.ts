import { compileProgram } from '@continuo/grammar/compile.ts';
import { GrammarRuntime } from '@continuo/grammar/runtime/grammar-runtime.ts';
import { GrammarVocabulary } from '@continuo/grammar/runtime/grammar-vocabulary.ts';
import { PatternSet } from '@continuo/grammar/runtime/pattern-set.ts';
import { type ApiError, errorFromWire } from '@continuo/shared/errors.ts';
import type { GenerationEvent, GenerationRequest } from '@continuo/shared/generation.ts';
import type { EngineEvent, EngineReport } from '../engine/messages.ts';
import { Engine } from '../engine/runs/engine.ts';
import { EngineLoop } from '../engine/runs/engine-loop.ts';
import { MARKERS } from '../infill/families.ts';
import { findInfill } from '../infill/infill.ts';
import { type ModelFiles, openGpuModel, openWebModel, textsIn } from '../model/web/open-web-model.ts';
import { type OrtWasm, WasmRuntime } from '../model/web/wasm-runtime.ts';
import { chooseRunner, type WebDevice } from '../model/web/web-device.ts';
import type { GpuDevice, OrtWebGpu } from '../model/web/webgpu-session.ts';
import { prepareGeneration } from '../request/prepare.ts';
import type { ServedModel } from '../request/served-model.ts';
import { SimdKernel } from '../sampling/kernel/simd-kernel.ts';
import { firstTokens } from '../tokenizer/token-bytes.ts';
import { Tokenizer } from '../tokenizer/tokenizer.ts';

export type { GpuDevice, ModelFiles, OrtWasm, OrtWebGpu, WebDevice };

/** Requests that may wait: those of one page. */
const MAX_WAITING = 64;

/**
 * A text that the devices of a browser must continue equally. It has nearly two chunks of the built-in model,
 * whose next 10 tokens are ahead of others by 0.6 or more.
 */
const SELF_TEST_TEXT = `Once upon a time there was a king who had three sons. The eldest went out into the
world to seek his fortune, and after a long way through the forest he came to a house where an old woman sat.
The king's son said to`;

/** What may run a model in place of WebAssembly. */
export interface LocalGpu {
  /** Brings onnxruntime-web's JSPI build, and a device of its own. */
  open(): Promise<{ readonly module: OrtWebGpu; readonly device: GpuDevice }>;
  /** Whether WebGPU is chosen also if WebAssembly is faster. */
  readonly forced: boolean;
  /** Called if WebGPU fails later, and WebAssembly goes on. */
  onChange(device: WebDevice): void;
}

interface LocalOptions {
  /** Of the model, and of its directory in messages. */
  readonly name: string;
  readonly files: ModelFiles;
  /** onnxruntime-web's, of its own for each model. */
  readonly module: OrtWasm;
  /** Lets the event loop turn, so that messages arrive between two steps. */
  turn(): Promise<void>;
  /** Absent = WebAssembly runs the model. */
  readonly gpu?: LocalGpu | null;
}

const WASM: WebDevice = { kind: 'wasm', reason: null };

type Listener = (events: readonly EngineEvent[]) => void;

/**
 * The engine as a library: a model that one thread runs, without Node: in a browser's worker. Tokenizer,
 * scheduler, sampler, constraints and stop search are those of an origin. Constraints are compiled in the
 * same thread, and there are no threads for sampling and no prefixes beyond the slots.
 */
export class LocalModel {
  readonly model: ServedModel;
  /** Where it was opened; `onChange` says if it moves. */
  readonly device: WebDevice;
  readonly #engine: Engine;
  readonly #loop = new EngineLoop();
  readonly #listeners = new Map<string, Listener>();
  #requests = 0;

  /** @throws ModelError with one line if the files are no model */
  static async open({ name, files, module, turn, gpu = null }: LocalOptions): Promise<LocalModel> {
    const texts = textsIn(files, name);
    const tokenizer = Tokenizer.of(texts, MARKERS);
    const kernel = new SimdKernel();
    const allocateLogits = (length: number) => kernel.allocate(length);
    const wasm = await openWebModel(files, texts, new WasmRuntime(module), allocateLogits);
    const openDevice = async (from: LocalGpu) => {
      const { module, device } = await from.open();
      return openGpuModel(files, texts, new WasmRuntime(module), device, allocateLogits);
    };
    const { runner, device } =
      gpu === null
        ? { runner: wasm, device: WASM }
        : await chooseRunner(wasm, () => openDevice(gpu), {
            prompt: Int32Array.from(
              tokenizer.encode(SELF_TEST_TEXT, { addSpecialTokens: true, parseSpecial: false }),
            ),
            forced: gpu.forced,
            allocateLogits,
            now: () => performance.now(),
            onChange: gpu.onChange,
          });
    const { vocabularySize, contextLength } = runner.shape;
    const vocabulary = new GrammarVocabulary(firstTokens(tokenizer.tokenBytes, vocabularySize));
    const compiled = (wire: string) => compileProgram(JSON.parse(wire));
    const model: ServedModel = {
      id: name,
      created: 0,
      contextLength,
      vocabularySize,
      tokenizer,
      encoder: { encode: async (text, options) => tokenizer.encode(text, options) },
      infill: findInfill(tokenizer, 'auto'),
      images: null,
    };
    return new LocalModel(
      model,
      device,
      {
        runner,
        kernel,
        tokenBytes: tokenizer.tokenBytes,
        eosIds: tokenizer.eosIds,
        maxWaiting: MAX_WAITING,
        compile: async (wire) => new GrammarRuntime(compiled(wire), vocabulary),
        compilePatterns: async (list) => new PatternSet(compiled(list)),
        now: () => performance.now(),
        unixNow: () => Date.now(),
      },
      turn,
    );
  }

  private constructor(
    model: ServedModel,
    device: WebDevice,
    options: Omit<ConstructorParameters<typeof Engine>[0], 'report' | 'onWork'>,
    turn: () => Promise<void>,
  ) {
    this.model = model;
    this.device = device;
    const report = (report: EngineReport) => this.#take(report);
    this.#engine = new Engine({ ...options, report, onWork: this.#loop.wake });
    this.#loop.run(this.#engine, { receive: () => true, turn }).catch((cause: unknown) => this.#fail(cause));
  }

  /**
   * Runs a request. The last event is `done` or `error`, unless the signal is aborted first.
   * @throws ApiError if the request is refused before its first token; the signal's reason
   */
  async generate(
    request: GenerationRequest,
    signal: AbortSignal,
    onEvents: (events: readonly GenerationEvent[]) => void,
  ): Promise<void> {
    const engineId = String(this.#requests++);
    const { submission, preamble, restore } = await prepareGeneration(request, {
      model: this.model,
      engineId,
      receivedAt: Date.now(),
      signal,
      drawSeed: () => Math.floor(Math.random() * 2 ** 32),
    });
    const ended = Promise.withResolvers<void>();
    let isFirst = true;
    this.#listeners.set(engineId, (events) => {
      const [first] = events;
      if (isFirst && first?.type === 'error') return ended.reject(errorFromWire(first));
      onEvents(isFirst ? [...preamble, ...events.map(restore)] : events.map(restore));
      isFirst = false;
      if (events.some(({ type }) => type === 'done' || type === 'error')) ended.resolve();
    });
    const abort = () => {
      this.#engine.abort(engineId);
      this.#loop.wake();
      ended.reject(signal.reason);
    };
    signal.addEventListener('abort', abort);
    try {
      this.#engine.submit(submission);
      this.#loop.wake();
      await ended.promise;
    } finally {
      signal.removeEventListener('abort', abort);
      this.#listeners.delete(engineId);
    }
  }

  #take(report: EngineReport): void {
    if (report.type === 'step')
      for (const [requestId, events] of report.events) this.#listeners.get(requestId)?.(events);
    if (report.type === 'refused')
      this.#endWith(report.requestId, 'server_is_overloaded', 'Too many requests wait.');
  }

  /** The engine cannot continue. */
  #fail(cause: unknown): void {
    for (const requestId of [...this.#listeners.keys()])
      this.#endWith(requestId, 'upstream_error', `The model failed: ${String(cause)}`);
  }

  #endWith(requestId: string, code: ApiError['code'], message: string): void {
    this.#listeners.get(requestId)?.([{ type: 'error', code, message, param: null, retryable: true }]);
  }
}
