import type { DecodeBatch } from '../model-runner.ts';

/** Which rows of a run are of sequences. */
interface AskedRows extends Pick<DecodeBatch, 'rows' | 'idle'> {
  readonly firstRow: number;
}

/** What the device computes that the host has not asked for: the run after the last one. */
export class BegunRun {
  /** Of the graph, from slot 0 on; 0 = no run has begun. */
  #rows = 0;
  readonly #tokens: Int32Array;
  readonly #positions: Int32Array;

  constructor(slots: number) {
    this.#tokens = new Int32Array(slots);
    this.#positions = new Int32Array(slots);
  }

  get exists(): boolean {
    return this.#rows > 0;
  }

  /** Notes a run of the rows of a batch after the tokens that were drawn in it. */
  begin(batch: DecodeBatch, drawn: Iterable<readonly [row: number, id: number]>): void {
    this.#rows = batch.rows;
    this.#tokens.fill(-1);
    this.#positions.set(batch.positions.subarray(0, batch.rows));
    for (const [row, id] of drawn) {
      this.#tokens[row] = id;
      this.#positions[row]!++;
    }
  }

  end(): void {
    this.#rows = 0;
  }

  /** Whether the device computes all rows of a batch that are of sequences. */
  has({ rows, tokens, positions }: DecodeBatch, { firstRow, rows: asked, idle }: AskedRows): boolean {
    if (rows > this.#rows) return false;
    for (let index = 0; index < asked; index++) {
      const row = firstRow + index;
      if (idle?.[index]) continue;
      if (this.#tokens[row] !== tokens[row] || this.#positions[row] !== positions[row]) return false;
    }
    return true;
  }
}
