import { ModelError } from '@continuo/origin/model/config/model-json.ts';
import type { RowRange, Weight, WeightPart } from '../design/weight-design.ts';
import { type Checkpoint, type CheckpointTensor, columnsOf, rowsOf } from './checkpoint.ts';
import { chooseRows, finite, type Matrix, stack, turnedRows } from './matrix.ts';
import { RowChoices } from './row-choices.ts';

/** A vector is a matrix of one column, so that parts of vectors can be chosen as rows. */
export type Shape = 'matrix' | 'vector';

/** Where the graph writer takes weights from. */
export interface WeightSource {
  /** @throws ModelError that names the tensor if it is missing or has other rows and columns */
  open(weight: Weight, shape: Shape, rows: number, columns: number): Matrix;
  /** Columns of the weight's first tensor. @throws ModelError if it is missing */
  widthOf(weight: Weight): number;
}

/** Of `a.b.c`: `a`, `a.b` and the name itself. */
const partsOf = (name: string): string[] => {
  const steps = name.split('.');
  return steps.map((_, index) => steps.slice(0, index + 1).join('.'));
};

/** Opens weights of a design and remembers which tensors were used. */
export class MatrixReader implements WeightSource {
  readonly #checkpoint: Checkpoint;
  readonly #storedName: (name: string) => string;
  readonly #used = new Set<string>();
  readonly #choices = new Map<string, RowChoices>();

  constructor(checkpoint: Checkpoint, storedName: (name: string) => string = (name) => name) {
    this.#checkpoint = checkpoint;
    this.#storedName = storedName;
  }

  /** Tensors that no `open` has used. If a part has none that was used, its tensors are counted. */
  get unused(): string[] {
    const partsInUse = new Set([...this.#used].flatMap(partsOf));
    const names = [...this.#checkpoint.tensors.keys()].filter((name) => !this.#used.has(name));
    const byPart = Map.groupBy(names, (name) => partsOf(name).find((part) => !partsInUse.has(part))!);
    return [...byPart].map(([part, [name = part, ...others]]) =>
      others.length === 0 ? name : `${part} (${others.length + 1} tensors)`,
    );
  }

  /** Values of the tensors that were used. */
  get parameters(): number {
    const sizes = [...this.#used].map((name) => this.#checkpoint.tensors.get(name)!.shape);
    return sizes.reduce((sum, shape) => sum + shape.reduce((product, size) => product * size, 1), 0);
  }

  open(weight: Weight, shape: Shape, rows: number, columns: number): Matrix {
    const parts = weight.map((part) => this.#part(part, shape));
    const matrix = parts.length === 1 ? parts[0]! : stack(parts);
    const wrong = parts.find((part) => part.columns !== columns) ?? matrix;
    if (wrong.columns === columns && matrix.rows === rows) return matrix;
    const stored = this.#checkpoint.tensors.get(this.#storedName(weight[0]!.tensor))!;
    const given = `${stored.name} is [${stored.shape.join(', ')}]`;
    throw new ModelError(
      `${this.#checkpoint.source}: tensor ${given}, which gives [${matrix.rows}, ${wrong.columns}], but config.json needs [${rows}, ${columns}]`,
    );
  }

  widthOf([part]: Weight): number {
    return this.#part(part!, 'matrix').columns;
  }

  #part(part: WeightPart, shape: Shape): Matrix {
    const name = this.#storedName(part.tensor);
    const tensor = this.#checkpoint.tensors.get(name);
    if (tensor === undefined)
      throw new ModelError(`${this.#checkpoint.source} lacks the tensor ${part.tensor}`);
    this.#used.add(name);
    const all =
      shape === 'vector' ? vectorOf(this.#checkpoint, name) : matrixOf(this.#checkpoint, name, part);
    if (part.rows === undefined && part.matrix === undefined) return all;
    const indices = indicesOf(part.rows ?? [{ first: 0, count: all.rows }]);
    const chosen = part.rows === undefined ? all : chooseRows(all, indices);
    this.#choicesOf(tensor, all.rows, part).add(part, indices);
    return chosen;
  }

  #choicesOf({ name, shape }: CheckpointTensor, rows: number, { matrix }: WeightPart): RowChoices {
    const matrices = matrix !== undefined && shape.length === 3 ? shape[0]! : 1;
    const choices = this.#choices.get(name) ?? new RowChoices(matrices, rows);
    this.#choices.set(name, choices);
    return choices;
  }

  /** @throws ModelError unless the parts make up the whole tensor: sizes of config.json are wrong */
  requireWholeTensors(): void {
    for (const [name, choices] of this.#choices) {
      const wrong = choices.wrong;
      if (wrong === null) continue;
      const shape = this.#checkpoint.tensors.get(name)!.shape.join(', ');
      throw new ModelError(
        `${this.#checkpoint.source}: tensor ${name} is [${shape}], but with the sizes of config.json its row ${wrong.row} has ${wrong.uses} uses instead of 1; check the numbers of heads, key-value heads and experts, and the widths`,
      );
    }
  }
}

const indicesOf = (ranges: readonly RowRange[]): Int32Array =>
  Int32Array.from(
    ranges.flatMap(({ first, count, step = 1 }) => Array.from({ length: count }, (_, i) => first + i * step)),
  );

function vectorOf(checkpoint: Checkpoint, name: string): Matrix {
  const tensor = checkpoint.tensors.get(name)!;
  const length = tensor.shape.reduce((product, size) => product * size, 1);
  return {
    name,
    rows: length,
    columns: 1,
    blocks: null,
    readRows: async (first, count) => {
      const values = await checkpoint.readRows(name, 0, rowsOf(tensor));
      return finite(name, values.slice(first, first + count));
    },
  };
}

function matrixOf(checkpoint: Checkpoint, name: string, { transposed, matrix }: WeightPart): Matrix {
  const tensor = checkpoint.tensors.get(name)!;
  const stacked = matrix !== undefined && tensor.shape.length === 3;
  const rows = stacked ? tensor.shape[1]! : rowsOf(tensor);
  const start = stacked ? matrix * rows : 0;
  const columns = columnsOf(tensor);
  if (transposed) return transpose(checkpoint, name, { start, rows, columns });
  return {
    name,
    rows,
    columns,
    blocks: tensor.blocks && {
      ...tensor.blocks,
      read: (first, count) => checkpoint.readBlocks(name, start + first, count),
    },
    readRows: async (first, count) => finite(name, await checkpoint.readRows(name, start + first, count)),
  };
}

/** Keeps the stored matrix in memory from the first row to the last. */
function transpose(
  checkpoint: Checkpoint,
  name: string,
  { start, rows, columns }: { readonly start: number; readonly rows: number; readonly columns: number },
): Matrix {
  let stored: Float32Array | null = null;
  return {
    name,
    rows: columns,
    columns: rows,
    blocks: null,
    readRows: async (first, count) => {
      stored ??= finite(name, await checkpoint.readRows(name, start, rows));
      const result = turnedRows(stored, columns, first, count);
      if (first + count >= columns) stored = null;
      return result;
    },
  };
}
