import { TOTAL_LENGTH } from '../../config/decoder-names.ts';
import type { DecoderInterface } from '../../decoder/decoder-interface.ts';
import type { BegunPrefill, PrefillChunk } from '../../model-runner.ts';
import { ElementType } from '../../onnx/onnx-graph.ts';
import { arrayTensor, type Pointer } from '../../ort/bound-tensors.ts';
import type { CudaCopies, HostMemory } from '../../ort/cuda-copies.ts';
import type { TimedEvent } from '../../ort/cuda-stream.ts';
import type { OrtBinding } from '../../ort/ort-binding.ts';
import type { OrtDeviceMemory } from '../../ort/ort-device.ts';
import type { OrtSession } from '../../ort/ort-session.ts';
import { bytesOfInputs, PrefillInputs } from '../batch-inputs.ts';
import type { KvLayout } from '../kv-cache.ts';
import { MAX_PROMPT_LOGITS } from '../runner-options.ts';
import type { DeviceKvCache } from './device-kv-cache.ts';
import { InputBlock } from './input-block.ts';

interface PromptsAheadOptions {
  readonly session: OrtSession;
  readonly decoder: DecoderInterface;
  /** Name of the float32 output. */
  readonly logitsName: string;
  readonly layout: KvLayout;
  /** Most rows of a run. */
  readonly prefillChunk: number;
  readonly cache: DeviceKvCache;
  readonly memory: OrtDeviceMemory;
  readonly copies: CudaCopies;
}

const WORD = 4;

/**
 * Runs of prompts that the host begins without waiting for them. Their inputs and logits have memory of their
 * own on the device, because a graph writes to all that is free between runs.
 */
export class PromptsAhead {
  readonly #options: PromptsAheadOptions;
  readonly #inputs: PrefillInputs;
  readonly #block: InputBlock;
  readonly #logits: Pointer;
  readonly #hostLogits: HostMemory;
  readonly #started: TimedEvent;
  readonly #ended: TimedEvent;
  #binding: OrtBinding | null = null;
  #isRunning = false;

  constructor(options: PromptsAheadOptions) {
    const { decoder, layout, prefillChunk, memory, copies } = options;
    this.#options = options;
    const bytes = bytesOfInputs(layout.slots, prefillChunk, prefillChunk + 1);
    this.#block = new InputBlock(memory, copies, bytes);
    this.#inputs = new PrefillInputs(layout.slots, prefillChunk, this.#block.allocate);
    const logitBytes = WORD * MAX_PROMPT_LOGITS * decoder.vocabularySize;
    this.#logits = memory.allocate(logitBytes);
    this.#hostLogits = copies.hostMemory(logitBytes);
    this.#started = copies.newTimedEvent();
    this.#ended = copies.newTimedEvent();
  }

  /** Whether the device may compute a run. */
  get isRunning(): boolean {
    return this.#isRunning;
  }

  /**
   * Begins a run. Returns null if it needs more rows of logits than there is room for.
   * @param waits whether ONNX Runtime waits for the run
   */
  begin(chunks: readonly PrefillChunk[], waits = false): BegunPrefill | null {
    const wanted = chunks.reduce((sum, { logitsAt }) => sum + logitsAt.length, 0);
    if (wanted > MAX_PROMPT_LOGITS || chunks.some(({ images }) => images !== undefined)) return null;
    const { session, decoder, copies } = this.#options;
    this.dispose();
    const binding = this.#bind(chunks);
    this.#binding = binding;
    this.#isRunning = true;
    copies.begin((work) => this.#block.bring(work));
    this.#started.record();
    if (waits) session.run(binding);
    else session.begin(binding);
    const bytes = WORD * wanted * decoder.vocabularySize;
    if (wanted > 0)
      copies.begin((work) =>
        work.copy(device(this.#logits, this.#hostLogits), host(this.#hostLogits), bytes, 1),
      );
    this.#ended.record();
    const { buffer, byteOffset } = this.#hostLogits.bytes;
    const since = () => this.#ended.since(this.#started);
    return {
      finish: () => {
        this.#ended.wait();
        this.#isRunning = false;
        return new Float32Array(buffer, byteOffset, bytes / WORD);
      },
      get deviceMs() {
        return since();
      },
    };
  }

  /** Call when the device has ended the last run. */
  dispose(): void {
    this.#binding?.dispose();
    this.#binding = null;
  }

  #bind(chunks: readonly PrefillChunk[]): OrtBinding {
    const { session, decoder, logitsName, cache, memory } = this.#options;
    const dimensions = this.#inputs.fill(chunks);
    const { sequences, logits } = dimensions;
    return session.bound((binding) => {
      this.#block.bind(binding, decoder, this.#inputs, dimensions);
      binding.input(TOTAL_LENGTH, arrayTensor(session.api, this.#inputs.totalLength, []));
      binding.output(logitsName, {
        address: this.#logits,
        elementType: ElementType.float32,
        elementBytes: WORD,
        dimensions: [logits, decoder.vocabularySize],
        memory: memory.info,
      });
      cache.bind(binding, chunks[0]!.slot, sequences);
    });
  }
}

const host = ({ address, bytes }: HostMemory) => ({ where: 'host', address, pitch: bytes.length }) as const;
const device = (address: Pointer, { bytes }: HostMemory) =>
  ({ where: 'device', address, pitch: bytes.length }) as const;
