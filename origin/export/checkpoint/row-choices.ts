import type { WeightPart } from '../design/weight-design.ts';

/** How often the parts of one tensor use each of its rows. A part that is opened again counts once. */
export class RowChoices {
  readonly #rows: number;
  readonly #uses: Uint8Array;
  readonly #parts = new Set<string>();

  constructor(matrices: number, rows: number) {
    this.#rows = rows;
    this.#uses = new Uint8Array(matrices * rows);
  }

  add({ matrix = 0, rows }: WeightPart, indices: Int32Array): void {
    const key = JSON.stringify([matrix, rows]);
    if (this.#parts.has(key)) return;
    this.#parts.add(key);
    const start = matrix * this.#rows;
    for (const index of indices) this.#uses[start + index]! += 1;
  }

  /** The first row that is not used exactly once. */
  get wrong(): { readonly row: number; readonly uses: number } | null {
    const row = this.#uses.findIndex((uses) => uses !== 1);
    return row < 0 ? null : { row, uses: this.#uses[row]! };
  }
}
