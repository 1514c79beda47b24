import {
  type DecodeBatch,
  type KeptState,
  type KvBytes,
  type ModelRunner,
  type ModelShape,
  type PrefillChunk,
  RunTerminated,
  type SlotStates,
} from '../model-runner.ts';
import { TrackedRunner } from './tracked-runner.ts';

const NEVER = new AbortController().signal;

/**
 * Runs a model on a device, and after the first fault of a run on the processor. It keeps the tokens of every
 * slot, and a runner computes those again that it lacks. So requests go on, with other rounding.
 */
export class FallbackRunner implements ModelRunner {
  readonly shape: ModelShape;
  readonly kvBytes: KvBytes;
  readonly states: SlotStates | null;
  readonly #processor: TrackedRunner;
  readonly #onFault: (fault: unknown) => void;
  /** The one that runs. */
  #current: TrackedRunner;
  /** By slot: the token of each position that a run or a copy has written. */
  readonly #tokens: readonly Int32Array[];

  /**
   * Owns both runners, which have the same slots, context and chunks.
   * @param onFault called once, when the processor takes over
   */
  constructor(device: ModelRunner, processor: ModelRunner, onFault: (fault: unknown) => void) {
    const { slots, contextLength } = device.shape;
    this.shape = device.shape;
    this.kvBytes = device.kvBytes;
    this.states = device.states ? this.#statesOf(device.states) : null;
    this.#current = new TrackedRunner(device);
    this.#processor = new TrackedRunner(processor);
    this.#onFault = onFault;
    this.#tokens = Array.from({ length: slots }, () => new Int32Array(contextLength));
  }

  async decode(batch: DecodeBatch, signal = NEVER): Promise<Float32Array> {
    const { firstSlot, rows, tokens, positions } = batch;
    const runs = Array.from({ length: rows }, (_, row) => {
      this.#tokens[firstSlot + row]![positions[row]!] = tokens[row]!;
      return { slot: firstSlot + row, start: positions[row]!, end: positions[row]! + 1 };
    });
    return this.#run(runs, signal, (runner) => runner.decode(batch, signal));
  }

  async prefill(chunk: PrefillChunk, signal: AbortSignal): Promise<Float32Array> {
    const { slot, start, tokens } = chunk;
    this.#tokens[slot]!.set(tokens, start);
    const end = start + tokens.length;
    return this.#run([{ slot, start, end }], signal, (runner) => runner.prefill(chunk, signal));
  }

  copy(from: number, to: number, end: number, start = 0): void {
    this.#tokens[to]!.set(this.#tokens[from]!.subarray(start, end), start);
    this.#current.copy(from, to, end, start);
  }

  dispose(): void {
    for (const { runner } of new Set([this.#current, this.#processor])) runner.dispose();
  }

  /** The engine restores a state only where the slot's tokens are those before it. */
  #statesOf({ bytes }: SlotStates): SlotStates {
    const unused = (): never => {
      throw new Error('states are kept by the runners');
    };
    return {
      bytes,
      keep: (slot, position): KeptState => {
        const runner = this.#current;
        const kept = runner.keep(slot, position);
        return { restore: (to, at) => this.#current.restore(this.#current === runner ? kept : null, to, at) };
      },
      read: unused,
      write: unused,
    };
  }

  async #run(
    runs: readonly { readonly slot: number; readonly start: number; readonly end: number }[],
    signal: AbortSignal,
    run: (runner: ModelRunner) => Float32Array | Promise<Float32Array>,
  ): Promise<Float32Array> {
    const current = this.#current;
    try {
      for (const { slot, start } of runs) await current.prepare(slot, start, this.#tokens[slot]!, signal);
      for (const { slot, start } of runs) current.begin(slot, start);
      const logits = await run(current.runner);
      for (const { slot, end } of runs) current.end(slot, end);
      return logits;
    } catch (fault) {
      if (fault instanceof RunTerminated || current === this.#processor) throw fault;
      this.#current = this.#processor;
      current.runner.dispose();
      this.#onFault(fault);
      return this.#run(runs, signal, run);
    }
  }
}
