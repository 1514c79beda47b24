import {
  type DecodeBatch,
  type KvBytes,
  type ModelRunner,
  type ModelShape,
  type PrefillChunk,
  RunTerminated,
} from '../model-runner.ts';

const NEVER = new AbortController().signal;

/**
 * Runs a model on a device, and after the first fault of a run on the processor. It keeps the tokens of every
 * slot, and computes them again there when a run needs them. So requests go on, with other rounding.
 */
export class FallbackRunner implements ModelRunner {
  readonly shape: ModelShape;
  readonly kvBytes: KvBytes;
  readonly #processor: ModelRunner;
  readonly #onFault: (fault: unknown) => void;
  /** Null after the fault. */
  #device: ModelRunner | null;
  /** By slot: the token of each position that a run or a copy has written. */
  readonly #tokens: readonly Int32Array[];
  /** By slot: how many positions are in the processor's KV. */
  readonly #computed: Int32Array;

  /**
   * Owns both runners, which have the same slots, context and chunks.
   * @param onFault called once, when the processor takes over
   */
  constructor(device: ModelRunner, processor: ModelRunner, onFault: (fault: unknown) => void) {
    const { slots, contextLength } = device.shape;
    this.shape = device.shape;
    this.kvBytes = device.kvBytes;
    this.#device = device;
    this.#processor = processor;
    this.#onFault = onFault;
    this.#tokens = Array.from({ length: slots }, () => new Int32Array(contextLength));
    this.#computed = new Int32Array(slots);
  }

  async decode(batch: DecodeBatch, signal = NEVER): Promise<Float32Array> {
    const { firstSlot, rows, tokens, positions } = batch;
    for (let row = 0; row < rows; row++) this.#tokens[firstSlot + row]![positions[row]!] = tokens[row]!;
    const logits = await this.#onDevice((device) => device.decode(batch, signal));
    if (logits !== null) return logits;
    for (let row = 0; row < rows; row++) await this.#restore(firstSlot + row, positions[row]!, signal);
    for (let row = 0; row < rows; row++) this.#computed[firstSlot + row] = positions[row]! + 1;
    return this.#processor.decode(batch, signal);
  }

  async prefill(chunk: PrefillChunk, signal: AbortSignal): Promise<Float32Array> {
    const { slot, start, tokens } = chunk;
    this.#tokens[slot]!.set(tokens, start);
    const logits = await this.#onDevice((device) => device.prefill(chunk, signal));
    if (logits !== null) return logits;
    await this.#restore(slot, start, signal);
    this.#computed[slot] = start + tokens.length;
    return this.#processor.prefill(chunk, signal);
  }

  copy(from: number, to: number, end: number, start = 0): void {
    this.#tokens[to]!.set(this.#tokens[from]!.subarray(start, end), start);
    if (this.#device !== null) {
      this.#device.copy(from, to, end, start);
      return;
    }
    // What is not there yet is computed from the copied tokens.
    const last = Math.min(end, this.#computed[from]!);
    const isWhole = this.#computed[to]! >= start && last > start;
    if (isWhole) this.#processor.copy(from, to, last, start);
    this.#computed[to] = isWhole ? last : Math.min(start, this.#computed[to]!);
  }

  dispose(): void {
    this.#device?.dispose();
    this.#processor.dispose();
  }

  /** Returns null if the processor must run. */
  async #onDevice(
    run: (device: ModelRunner) => Float32Array | Promise<Float32Array>,
  ): Promise<Float32Array | null> {
    const device = this.#device;
    if (device === null) return null;
    try {
      return await run(device);
    } catch (fault) {
      if (fault instanceof RunTerminated) throw fault;
      this.#device = null;
      device.dispose();
      this.#onFault(fault);
      return null;
    }
  }

  /** Computes positions of a slot up to `end` that the processor lacks. */
  async #restore(slot: number, end: number, signal: AbortSignal): Promise<void> {
    const { prefillChunk } = this.shape;
    for (let start = this.#computed[slot]!; start < end; start = this.#computed[slot]!) {
      const next = Math.min(end, (Math.floor(start / prefillChunk) + 1) * prefillChunk);
      const tokens = this.#tokens[slot]!.slice(start, next);
      await this.#processor.prefill({ slot, start, tokens, logitsAt: new Int32Array() }, signal);
      this.#computed[slot] = next;
    }
  }
}
