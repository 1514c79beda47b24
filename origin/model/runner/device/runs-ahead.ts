import type { DecodeBatch, SlotToken } from '../../model-runner.ts';
import type { CudaCopies } from '../../ort/cuda-copies.ts';
import type { CudaEvent } from '../../ort/cuda-stream.ts';
import type { KvLayout } from '../kv-cache.ts';
import type { AskedRows } from './brought-rows.ts';
import type { DeviceDecodeInputs } from './decode-inputs.ts';
import type { DeviceLogits } from './device-logits.ts';
import { RowsAhead } from './rows-ahead.ts';

interface RunsAheadOptions {
  readonly copies: CudaCopies;
  readonly inputs: DeviceDecodeInputs;
  readonly layout: Pick<KvLayout, 'slots' | 'contextLength'>;
  /** Gives the card the graph of so many rows, with the inputs that are on the device. */
  readonly run: (rows: number, waits: boolean) => void;
}

/**
 * Decode runs that the card gets before the host reads the tokens of the last one. The host waits for an
 * event before such a run. What it writes or reads meanwhile, the run does not touch.
 */
export class RunsAhead {
  readonly #options: RunsAheadOptions;
  readonly #rows: RowsAhead;
  /** Passes when tokens are drawn. */
  readonly #drawn: CudaEvent;
  /** The last run, if the next one overwrites its logits. */
  #overwritten: DecodeBatch | null = null;
  /** The card may compute something that was not waited for. */
  #isBusy = false;

  constructor(options: RunsAheadOptions) {
    this.#options = options;
    this.#rows = new RowsAhead(options.layout.slots);
    this.#drawn = options.copies.newEvent();
  }

  /** Whether the card computes a row in the run that has begun. */
  has(row: SlotToken): boolean {
    return this.#rows.has(row);
  }

  /**
   * Notes that work follows which changes the KV of these slots, and is not waited for. Their rows are lost.
   */
  addWork(slots: readonly number[]): void {
    this.#isBusy = true;
    for (const slot of slots) this.#rows.forget(slot);
  }

  /** Waits for what the card computes. */
  settle(): void {
    if (!this.#isBusy) return;
    this.#options.copies.wait();
    this.#isBusy = false;
  }

  /** Waits for what the card computes, before the KV of a slot changes. The slot's row is lost. */
  release(slot: number): void {
    this.settle();
    this.#rows.forget(slot);
  }

  /**
   * Takes the run that has begun, if it has all rows of a batch that are of sequences; else waits for it.
   * Returns the rows of that run; 0 = the batch is to be run.
   */
  take({ tokens, positions }: DecodeBatch, { firstRow, rows, idle }: AskedRows): number {
    const asked = Array.from({ length: rows }, (_, index) => firstRow + index);
    const hasAll = asked.every(
      (slot, index) => idle?.[index] || this.has({ slot, token: tokens[slot]!, position: positions[slot]! }),
    );
    const taken = hasAll ? this.#rows.rows : 0;
    this.forget();
    if (taken === 0) this.settle();
    return taken;
  }

  /** Forgets the run that has begun, and the one before it. */
  forget(): void {
    this.#rows.clear();
    this.#overwritten = null;
  }

  /**
   * Begins the draws of a batch and the run after it, then waits for the draws.
   * @param taken as `take` returned
   */
  begin(sparse: DeviceLogits, batch: DecodeBatch, { joining = [] }: AskedRows, taken: number): void {
    const { inputs, run, layout } = this.#options;
    this.#isBusy = true;
    inputs.fill(batch);
    if (taken === 0) {
      inputs.copy();
      run(batch.rows, false);
    }
    for (const row of joining) inputs.fillRow(row);
    const next = {
      tokens: inputs.block.at(inputs.tokens),
      positions: inputs.block.at(inputs.positions),
      lastPositions: inputs.block.at(inputs.lastPositions),
      contextLength: layout.contextLength,
    };
    sparse.beginDraws(next, (work) => inputs.block.bring(work));
    this.#drawn.record();
    run(batch.rows, false);
    this.#drawn.wait();
    this.#rows.set(batch, sparse.drawnIds(), joining);
    this.#overwritten = taken === 0 ? batch : { ...batch, rows: taken };
  }

  /** Makes the last run again if the next one has overwritten its logits. KV is the same after it. */
  repeatLast(): void {
    const batch = this.#overwritten;
    if (batch === null) return;
    this.forget();
    this.settle();
    const { inputs, run } = this.#options;
    inputs.fill(batch);
    inputs.copy();
    run(batch.rows, true);
  }
}
