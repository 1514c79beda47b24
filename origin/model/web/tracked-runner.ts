import type { KeptState, ModelRunner } from '../model-runner.ts';

/** A runner, and the positions that each of its slots has. It computes what a run needs and a slot lacks. */
export class TrackedRunner {
  readonly runner: ModelRunner;
  /** By slot: how many positions are in its KV. */
  readonly #computed: Int32Array;
  /** By slot: the positions whose states it has. All have the state of position 0. */
  readonly #states: [began: number, ended: number][];

  constructor(runner: ModelRunner) {
    const { slots } = runner.shape;
    this.runner = runner;
    this.#computed = new Int32Array(slots);
    this.#states = Array.from({ length: slots }, () => [0, 0]);
  }

  /** Computes what a slot lacks for a run that begins at `end`. @param tokens of the slot's positions */
  async prepare(slot: number, end: number, tokens: Int32Array, signal: AbortSignal): Promise<void> {
    const { prefillChunk } = this.runner.shape;
    for (let start = this.#startOf(slot, end); start < end; ) {
      const next = Math.min(end, (Math.floor(start / prefillChunk) + 1) * prefillChunk);
      this.begin(slot, start);
      const chunk = { slot, start, tokens: tokens.slice(start, next), logitsAt: new Int32Array() };
      await this.runner.prefill(chunk, signal);
      this.end(slot, (start = next));
    }
  }

  /** Notes that a run begins. What it writes counts once it has ended. */
  begin(slot: number, position: number): void {
    this.#computed[slot] = Math.min(this.#computed[slot]!, position);
    this.#states[slot] = [position, position];
  }

  end(slot: number, position: number): void {
    this.#computed[slot] = position;
    this.#states[slot]![1] = position;
  }

  /** Copies what is there of [start, end). */
  copy(from: number, to: number, end: number, start: number): void {
    const last = Math.min(end, this.#computed[from]!);
    const isWhole = this.#computed[to]! >= start && last > start;
    if (isWhole) this.runner.copy(from, to, last, start);
    this.#computed[to] = isWhole ? last : Math.min(start, this.#computed[to]!);
  }

  /** Keeps the state of a position; null if the slot does not have it. */
  keep(slot: number, position: number): KeptState | null {
    const hasIt = position > 0 && this.#states[slot]!.includes(position);
    return hasIt ? this.runner.states!.keep(slot, position) : null;
  }

  /** Puts a kept state into a slot. Without it, the next run computes it again. */
  restore(kept: KeptState | null, slot: number, position: number): void {
    const isThere = kept !== null && !kept.isLost;
    if (isThere) kept.restore(slot, position);
    this.#states[slot] = isThere ? [position, position] : [0, 0];
  }

  /** Returns the last position up to `end` that a run can begin at. */
  #startOf(slot: number, end: number): number {
    const first = Math.min(end, this.#computed[slot]!);
    if (!this.runner.states) return first;
    return Math.max(0, ...this.#states[slot]!.filter((position) => position <= first));
  }
}
