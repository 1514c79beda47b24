import { oneLine } from '@continuo/shared/error-details.ts';
import type {
  BegunPrefill,
  DecodeBatch,
  KvBytes,
  LogitRows,
  ModelRunner,
  ModelShape,
  PrefillChunk,
  SlotToken,
  SparseRows,
} from '../../model-runner.ts';
import { faultKind } from '../../model-runner.ts';
import { RunGuard } from '../../ort/run-guard.ts';
import { IdleRows } from '../idle-rows.ts';
import type { OrtRunner, ProbedShape } from '../ort-runner.ts';
import { promptFault } from './check-ahead.ts';
import type { DecodeGraphs } from './decode-graphs.ts';
import type { PromptsAhead } from './prompts-ahead.ts';

interface GraphParts {
  /** Runs prompts. Owns what the parts share. */
  readonly prefiller: OrtRunner;
  readonly graphs: DecodeGraphs;
  /** Runs prompts behind decode runs that have begun. */
  readonly prompts: PromptsAhead;
}

/**
 * A ModelRunner that decodes by CUDA graphs. A graph has its own number of rows and begins at slot 0, so a
 * batch gets rows of idle slots. If these would be more than half, the batch runs without a graph.
 *
 * A step goes through DecodeInputs (tokens and positions to the card), DecodeGraphs (the run), BroughtRows
 * (what the host needs of its logits), DeviceLogits (summaries of the rest) and DeviceDraws (tokens).
 * RunsAhead and PromptsAhead give the card its next work before the host reads these tokens.
 */
export class GraphRunner implements ModelRunner {
  readonly #parts: GraphParts;
  readonly #idle: IdleRows;
  readonly #guard = new RunGuard(() => this.#release());
  #captured = false;
  #promptFault: string | null = null;

  constructor(parts: GraphParts) {
    this.#parts = parts;
    this.#idle = new IdleRows(parts.prefiller.shape);
  }

  get shape(): ModelShape {
    return this.#parts.prefiller.shape;
  }

  /** Adds what probes have found to the shape. */
  addProbed(found: ProbedShape): void {
    this.#parts.prefiller.addProbed(found);
  }

  get kvBytes(): KvBytes {
    const { read, write, ...kv } = this.#idle.observed(this.#parts.prefiller.kvBytes);
    const { graphs, prompts } = this.#parts;
    return {
      ...kv,
      // A decode run that has begun writes to no position that is read.
      read: (...args) => {
        if (prompts.isRunning) graphs.settle();
        read(...args);
      },
      write: (slot, ...args) => {
        graphs.release(slot);
        write(slot, ...args);
      },
    };
  }

  get sparse(): SparseRows | null {
    return this.#parts.graphs.sparse;
  }

  get usesGraphs(): boolean {
    return this.#captured;
  }

  /** Why decode runs bring whole rows only; null if that is not so. */
  get sparseFault(): string | null {
    return this.#parts.graphs.sparseFault;
  }

  /** Why decode runs draw no tokens; null if they do. */
  get drawFault(): string | null {
    return this.#parts.graphs.drawFault;
  }

  /** Why decode runs begin only when the last tokens are read; null if they begin before. */
  get aheadFault(): string | null {
    return this.#parts.graphs.aheadFault;
  }

  get runsAhead(): boolean {
    return this.#captured && this.aheadFault === null;
  }

  /** Why prompts wait for decode runs that have begun; null if they begin behind them. */
  get promptFault(): string | null {
    return this.aheadFault ?? this.#promptFault;
  }

  hasBegun(row: SlotToken): boolean {
    return this.#parts.graphs.hasBegun(row);
  }

  /** Call once before prompts and after the largest runs: a capture cannot allocate. @throws Error */
  capture(): void {
    this.#guard.requireIdle();
    this.#parts.graphs.capture();
    this.#captured = true;
    if (this.aheadFault === null) this.#promptFault = this.#checkPrompts();
  }

  /** ONNX Runtime may refuse runs that it does not wait for. */
  #checkPrompts(): string | null {
    const { graphs, prompts } = this.#parts;
    try {
      return promptFault(this, prompts);
    } catch (thrown) {
      if (faultKind(thrown) !== 'other') throw thrown;
      graphs.settle();
      return oneLine(thrown);
    }
  }

  decode(batch: DecodeBatch): Float32Array {
    this.#guard.requireIdle();
    const { firstSlot, joining = [] } = batch;
    const { graphs } = this.#parts;
    const end = Math.max(firstSlot + batch.rows, ...joining.map(({ slot }) => slot + 1));
    const rows = graphs.rowsFor(end);
    const suits = this.#captured && rows <= 2 * (batch.rows + joining.length);
    const wide = this.#idle.widened(batch, suits ? { firstSlot: 0, rows } : batch);
    const logits = suits
      ? graphs.decode(wide, { ...batch, firstRow: firstSlot })
      : graphs.decodeOrdinary({ ...batch, ...wide });
    this.#idle.decoded(batch);
    return logits;
  }

  beginPrefill(chunks: readonly PrefillChunk[]): BegunPrefill | null {
    this.#guard.requireIdle();
    if (!this.runsAhead || this.promptFault !== null) return null;
    this.#parts.graphs.addWork(chunks.map(({ slot }) => slot));
    const begun = this.#parts.prompts.begin(chunks);
    if (begun !== null) this.#written(chunks);
    return begun;
  }

  prefill(chunk: PrefillChunk, signal: AbortSignal): Promise<Float32Array> {
    return this.prefillTogether([chunk], signal);
  }

  prefillTogether(chunks: readonly PrefillChunk[], signal: AbortSignal): Promise<Float32Array> {
    return this.#run(chunks, (prefiller) => prefiller.prefillTogether(chunks, signal));
  }

  score(chunks: readonly PrefillChunk[], next: Int32Array, signal: AbortSignal): Promise<LogitRows> {
    return this.#run(chunks, (prefiller) => prefiller.score(chunks, next, signal));
  }

  dropScores(): void {
    this.#parts.prefiller.dropScores();
  }

  #run<T>(chunks: readonly PrefillChunk[], run: (prefiller: OrtRunner) => Promise<T>): Promise<T> {
    return this.#guard.run(async () => {
      const { graphs } = this.#parts;
      for (const { slot } of chunks) graphs.release(slot);
      graphs.sparse?.logits.clear();
      const result = await run(this.#parts.prefiller);
      this.#written(chunks);
      return result;
    });
  }

  #written(chunks: readonly PrefillChunk[]): void {
    for (const { slot, start, tokens } of chunks) this.#idle.written(slot, start, tokens.length);
  }

  copy(from: number, to: number, end: number, start = 0): void {
    this.#guard.requireIdle();
    if (from === to) return;
    this.#parts.graphs.release(to);
    this.#parts.prefiller.copy(from, to, end, start);
    this.#idle.written(to, start, end - start);
  }

  dispose(): void {
    this.#guard.dispose();
  }

  #release(): void {
    try {
      // Waits for the device.
      this.#parts.graphs.dispose();
    } finally {
      this.#parts.prompts.dispose();
      this.#parts.prefiller.dispose();
    }
  }
}
