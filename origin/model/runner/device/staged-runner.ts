import type {
  DecodeBatch,
  KvBytes,
  ModelRunner,
  ModelShape,
  PrefillChunk,
  SlotStates,
} from '../../model-runner.ts';
import { RunTerminated } from '../../model-runner.ts';
import { RunGuard } from '../../ort/run-guard.ts';
import { IdleRows } from '../idle-rows.ts';
import type { OrtRunner } from '../ort-runner.ts';
import type { DeviceKvCache } from './device-kv-cache.ts';

interface StagedParts {
  /** Decodes all slots; its cache is `slots`. */
  readonly decoder: OrtRunner;
  /** Prefills its only slot; its cache is `staging`. */
  readonly prefiller: ModelRunner;
  readonly slots: DeviceKvCache;
  readonly staging: DeviceKvCache;
  /** Releases what the parts share, after they are disposed. */
  release(): void;
}

type SlotOf = readonly [runner: Pick<ModelRunner, 'states'>, slot: number];

/**
 * A ModelRunner for devices that can only bind whole buffers, so that no run can use one slot of many as its
 * KV and state. A prompt is computed in a cache of one slot, and each chunk's new positions are copied to its
 * slot, as is the state after it.
 * Decode rows start at slot 0.
 */
export class StagedRunner implements ModelRunner {
  readonly shape: ModelShape;
  readonly #parts: StagedParts;
  readonly #idle: IdleRows;
  /** The slot whose first positions are also in the staging cache. */
  #staged = { slot: -1, positions: 0 };
  readonly #guard = new RunGuard(() => this.#release());

  constructor(parts: StagedParts) {
    this.#parts = parts;
    this.shape = { ...parts.decoder.shape, prefillChunk: parts.prefiller.shape.prefillChunk };
    this.#idle = new IdleRows(this.shape);
  }

  decode(batch: DecodeBatch): Float32Array {
    this.#guard.requireIdle();
    const { firstSlot, rows } = batch;
    // Idle rows keep the caller's positions: elsewhere, a slot's state would be lost.
    const asked = { ...batch, idle: undefined };
    const wide = this.#idle.widened(asked, { firstSlot: 0, rows: firstSlot + rows });
    for (let slot = 0; slot < wide.rows; slot++) this.#unstage(slot, wide.positions[slot]!);
    this.#idle.decoded(asked);
    return this.#parts.decoder.decode(wide).subarray(firstSlot * this.shape.vocabularySize);
  }

  prefill(chunk: PrefillChunk, signal: AbortSignal): Promise<Float32Array> {
    const { slots, staging, decoder, prefiller } = this.#parts;
    return this.#guard.run(async () => {
      if (signal.aborted) throw new RunTerminated('the prefill was cancelled before it started');
      const { slot, start, tokens } = chunk;
      const end = start + tokens.length;
      const { slot: staged, positions } = this.#staged;
      if (staged !== slot || positions < start) slots.copyTo(staging, { slot, start: 0, end: start }, 0);
      if (start > 0 && (staged !== slot || positions !== start))
        this.#copyState([decoder, slot], [prefiller, 0], start);
      this.#staged = { slot, positions: start };
      const logits = await prefiller.prefill({ ...chunk, slot: 0 }, signal);
      staging.copyTo(slots, { slot: 0, start, end }, slot);
      this.#copyState([prefiller, 0], [decoder, slot], end);
      this.#written(slot, start, tokens.length);
      this.#staged = { slot, positions: end };
      return logits;
    });
  }

  copy(from: number, to: number, end: number, start = 0): void {
    this.#guard.requireIdle();
    if (from === to) return;
    this.#parts.slots.copy(from, to, end, start);
    this.#written(to, start, end - start);
  }

  get kvBytes(): KvBytes {
    return this.#idle.observed(this.#parts.slots, (slot, start) => this.#unstage(slot, start));
  }

  get states(): SlotStates | null {
    const { states } = this.#parts.decoder;
    if (!states) return null;
    return {
      bytes: states.bytes,
      keep: (slot, position) => {
        const kept = states.keep(slot, position);
        return {
          restore: (to, at) => {
            kept.restore(to, at);
            this.#unstage(to, 0);
          },
        };
      },
      read: (slot, position, bytes) => states.read(slot, position, bytes),
      write: (slot, position, bytes) => {
        states.write(slot, position, bytes);
        this.#unstage(slot, 0);
      },
    };
  }

  dispose(): void {
    this.#guard.dispose();
  }

  #release(): void {
    this.#parts.decoder.dispose();
    this.#parts.prefiller.dispose();
    this.#parts.release();
  }

  /** Copies the state of a position, through main memory. */
  #copyState([from, slot]: SlotOf, [to, target]: SlotOf, position: number): void {
    if (!from.states) return;
    const bytes = new Uint8Array(from.states.bytes);
    from.states.read(slot, position, bytes);
    to.states?.write(target, position, bytes);
  }

  /** Records a write to a slot outside the staging cache. */
  #written(slot: number, start: number, length: number): void {
    this.#idle.written(slot, start, length);
    this.#unstage(slot, start);
  }

  #unstage(slot: number, start: number): void {
    if (this.#staged.slot === slot) this.#staged.positions = Math.min(this.#staged.positions, start);
  }
}
