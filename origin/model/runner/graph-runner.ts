import type {
  DecodeBatch,
  KvBytes,
  LogitRows,
  ModelRunner,
  ModelShape,
  PrefillChunk,
  SparseRows,
} from '../model-runner.ts';
import { RunGuard } from '../ort/run-guard.ts';
import type { DecodeGraphs } from './decode-graphs.ts';
import { IdleRows } from './idle-rows.ts';
import type { OrtRunner } from './ort-runner.ts';

interface GraphParts {
  /** Runs prompts. Owns what the parts share. */
  readonly prefiller: OrtRunner;
  readonly graphs: DecodeGraphs;
}

/**
 * A ModelRunner that decodes by CUDA graphs. A graph has its own number of rows and begins at slot 0, so a
 * batch gets rows of idle slots. If these would be more than half, the batch runs without a graph.
 */
export class GraphRunner implements ModelRunner {
  readonly #parts: GraphParts;
  readonly #idle: IdleRows;
  readonly #guard = new RunGuard(() => this.#release());
  #captured = false;

  constructor(parts: GraphParts) {
    this.#parts = parts;
    this.#idle = new IdleRows(parts.prefiller.shape);
  }

  get shape(): ModelShape {
    return this.#parts.prefiller.shape;
  }

  /** Set after the runner was probed. */
  set joinsPrompts(joinsPrompts: boolean) {
    this.#parts.prefiller.joinsPrompts = joinsPrompts;
  }

  get kvBytes(): KvBytes {
    const { read, write, ...kv } = this.#idle.observed(this.#parts.prefiller.kvBytes);
    const { graphs } = this.#parts;
    return {
      ...kv,
      read: (...args) => {
        graphs.settle();
        read(...args);
      },
      write: (...args) => {
        graphs.settle();
        write(...args);
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

  get hasBegun(): boolean {
    return this.#parts.graphs.hasBegun;
  }

  /** Call once before prompts and after the largest runs: a capture cannot allocate. @throws Error */
  capture(): void {
    this.#guard.requireIdle();
    this.#parts.graphs.capture();
    this.#captured = true;
  }

  decode(batch: DecodeBatch): Float32Array {
    this.#guard.requireIdle();
    const { firstSlot } = batch;
    const { graphs } = this.#parts;
    const graphRows = graphs.rowsFor(firstSlot + batch.rows);
    const suits = this.#captured && graphRows <= 2 * batch.rows;
    const logits = suits
      ? graphs.decode(this.#idle.widened(batch, graphRows), { ...batch, firstRow: firstSlot })
      : graphs.decodeOrdinary(batch);
    this.#idle.decoded(batch);
    return logits;
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
      this.#parts.graphs.settle();
      this.#parts.graphs.sparse?.logits.clear();
      const result = await run(this.#parts.prefiller);
      for (const { slot, start, tokens } of chunks) this.#idle.written(slot, start, tokens.length);
      return result;
    });
  }

  copy(from: number, to: number, end: number, start = 0): void {
    this.#guard.requireIdle();
    if (from === to) return;
    this.#parts.graphs.settle();
    this.#parts.prefiller.copy(from, to, end, start);
    this.#idle.written(to, start, end - start);
  }

  dispose(): void {
    this.#guard.dispose();
  }

  #release(): void {
    this.#parts.graphs.dispose();
    this.#parts.prefiller.dispose();
  }
}
