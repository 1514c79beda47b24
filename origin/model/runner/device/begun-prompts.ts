import { LAST_POSITIONS, LOGITS_INDEX, TOTAL_LENGTH } from '../../config/decoder-names.ts';
import type { DecoderInterface } from '../../decoder/decoder-interface.ts';
import type { BegunPrefill, PrefillChunk } from '../../model-runner.ts';
import { ElementType } from '../../onnx/onnx-graph.ts';
import { arrayTensor, type DeviceTensor, type Pointer } from '../../ort/bound-tensors.ts';
import type { CudaCopies, HostMemory } from '../../ort/cuda-copies.ts';
import type { TimedEvent } from '../../ort/cuda-stream.ts';
import type { OrtBinding } from '../../ort/ort-binding.ts';
import type { OrtDeviceMemory } from '../../ort/ort-device.ts';
import type { OrtSession } from '../../ort/ort-session.ts';
import { PrefillInputs } from '../batch-inputs.ts';
import type { KvLayout } from '../kv-cache.ts';
import { MAX_PROMPT_LOGITS } from '../runner-options.ts';
import type { DeviceKvCache } from './device-kv-cache.ts';

interface BegunPromptsOptions {
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

const LONG = 8;
const WORD = 4;

/**
 * Runs of prompts that the host begins without waiting for them. Their inputs and logits have memory of their
 * own on the device, because a graph writes to all that is free between runs.
 */
export class BegunPrompts {
  readonly #options: BegunPromptsOptions;
  readonly #inputs: PrefillInputs;
  readonly #host: HostMemory;
  readonly #device: Pointer;
  readonly #logits: Pointer;
  readonly #hostLogits: HostMemory;
  readonly #started: TimedEvent;
  readonly #ended: TimedEvent;
  #binding: OrtBinding | null = null;
  #isRunning = false;

  constructor(options: BegunPromptsOptions) {
    const { decoder, layout, prefillChunk, memory, copies } = options;
    this.#options = options;
    this.#inputs = new PrefillInputs(layout.slots, prefillChunk);
    const bytes = this.#offsets.end;
    this.#host = copies.hostMemory(bytes);
    this.#device = memory.allocate(bytes);
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
    copies.begin((work) =>
      work.copy(host(this.#host), device(this.#device, this.#host), this.#offsets.end, 1),
    );
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

  /** Where each input begins in the memory of all. */
  get #offsets() {
    const { layout, prefillChunk } = this.#options;
    const positions = LONG * prefillChunk;
    const index = positions + LONG * prefillChunk;
    const lastPositions = index + LONG * MAX_PROMPT_LOGITS;
    return { tokens: 0, positions, index, lastPositions, end: lastPositions + WORD * layout.slots };
  }

  #bind(chunks: readonly PrefillChunk[]): OrtBinding {
    const { session, decoder, logitsName, cache } = this.#options;
    const { tokenInput, positionIds, vocabularySize } = decoder;
    const { sequences, length, logits } = this.#fill(chunks);
    const { tokens, positions, index, lastPositions } = this.#offsets;
    const { int64, int32, float32 } = ElementType;
    return session.bound((binding) => {
      const input = (name: string, at: number, type: number, dimensions: readonly number[]) =>
        binding.input(name, this.#tensor(this.#device + BigInt(at), type, dimensions));
      input(tokenInput, tokens, int64, [sequences, length]);
      if (positionIds !== null) input(positionIds, positions, int64, [sequences, length]);
      input(LOGITS_INDEX, index, int64, [logits]);
      input(LAST_POSITIONS, lastPositions, int32, [sequences]);
      // In main memory.
      binding.input(TOTAL_LENGTH, arrayTensor(session.api, this.#inputs.totalLength, []));
      binding.output(logitsName, this.#tensor(this.#logits, float32, [logits, vocabularySize]));
      cache.bind(binding, chunks[0]!.slot, sequences);
    });
  }

  /** Writes the inputs to page-locked memory. */
  #fill(chunks: readonly PrefillChunk[]) {
    const filled = this.#inputs.fill(chunks);
    const { tokens, positions, logitsIndex, lastPositions } = this.#inputs;
    const { buffer, byteOffset } = this.#host.bytes;
    const at = this.#offsets;
    const count = filled.sequences * filled.length;
    const longs = (start: number, values: BigInt64Array) =>
      new BigInt64Array(buffer, byteOffset + start, values.length).set(values);
    longs(at.tokens, tokens.subarray(0, count));
    longs(at.positions, positions.subarray(0, count));
    longs(at.index, logitsIndex.subarray(0, filled.logits));
    new Int32Array(buffer, byteOffset + at.lastPositions, filled.sequences).set(
      lastPositions.subarray(0, filled.sequences),
    );
    return filled;
  }

  #tensor(address: Pointer, elementType: number, dimensions: readonly number[]): DeviceTensor {
    const elementBytes = elementType === ElementType.int64 ? LONG : WORD;
    return { address, elementType, elementBytes, dimensions, memory: this.#options.memory.info };
  }
}

const host = ({ address, bytes }: HostMemory) => ({ where: 'host', address, pitch: bytes.length }) as const;
const device = (address: Pointer, { bytes }: HostMemory) =>
  ({ where: 'device', address, pitch: bytes.length }) as const;
