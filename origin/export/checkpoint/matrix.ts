import { ModelError } from '@continuo/origin/model/config/model-json.ts';
import { joinedBytes } from '@continuo/shared/framing.ts';
import type { BlockFormat, BlockRows } from './checkpoint.ts';

/** Stored blocks of a matrix, which are read without loss. */
interface StoredBlocks extends BlockFormat {
  read(first: number, count: number): Promise<BlockRows>;
}

/** A matrix of weights that is read by rows, whatever tensors it is made of. */
export interface Matrix {
  /** For messages: the first tensor's name. */
  readonly name: string;
  readonly rows: number;
  readonly columns: number;
  /** Null if it can be read as floats only. */
  readonly blocks: StoredBlocks | null;
  /** @throws ModelError that names the tensor if a value is not finite */
  readRows(first: number, count: number): Promise<Float32Array>;
}

/** Rows of the transposed matrix, whose rows are the `columns` columns of `values`. */
export function turnedRows(
  values: Float32Array,
  columns: number,
  first: number,
  count: number,
): Float32Array {
  const rows = values.length / columns;
  const result = new Float32Array(count * rows);
  for (let column = 0; column < rows; column++) {
    for (let row = 0; row < count; row++) {
      result[row * rows + column] = values[column * columns + first + row]!;
    }
  }
  return result;
}

/**
 * Adding 0 · x of every value finds NaN and infinity without a branch. Four sums, because each waits for its
 * last addition.
 */
export function finite(name: string, values: Float32Array): Float32Array {
  let [a, b, c, d] = [0, 0, 0, 0];
  const end = values.length - (values.length % 4);
  for (let i = 0; i < end; i += 4) {
    a += values[i]! * 0;
    b += values[i + 1]! * 0;
    c += values[i + 2]! * 0;
    d += values[i + 3]! * 0;
  }
  for (let i = end; i < values.length; i++) a += values[i]! * 0;
  if (a + b + c + d === 0) return values;
  const at = values.findIndex((value) => !Number.isFinite(value));
  throw new ModelError(
    `tensor ${name} has the value ${values[at]}, which is not finite: the weights are damaged`,
  );
}

/** Rows of a matrix by index, in any order. */
export function chooseRows(from: Matrix, indices: Int32Array): Matrix {
  const outside = indices.find((row) => row < 0 || row >= from.rows);
  if (outside !== undefined) {
    throw new ModelError(`tensor ${from.name} has ${from.rows} rows, but config.json needs row ${outside}`);
  }
  return {
    ...from,
    rows: indices.length,
    blocks: from.blocks && {
      ...from.blocks,
      read: (first, count) => chooseBlocks(from, indices.subarray(first, first + count)),
    },
    readRows: async (first, count) => {
      const result = new Float32Array(count * from.columns);
      await gather(indices.subarray(first, first + count), async (start, length, each) => {
        const values = await from.readRows(start, length);
        each((to, row) => result.set(rowOf(values, row, from.columns), to * from.columns));
      });
      return result;
    },
  };
}

const rowOf = <T extends Float32Array | Uint8Array>(values: T, row: number, width: number) =>
  values.subarray(row * width, (row + 1) * width);

async function chooseBlocks(from: Matrix, indices: Int32Array): Promise<BlockRows> {
  const { levels, scales } = blockSizes(from.blocks!, from.columns);
  const result = {
    levels: new Uint8Array(indices.length * levels),
    scales: new Float32Array(indices.length * scales),
  };
  await gather(indices, async (start, length, each) => {
    const rows = await from.blocks!.read(start, length);
    each((to, row) => {
      result.levels.set(rowOf(rows.levels, row, levels), to * levels);
      result.scales.set(rowOf(rows.scales, row, scales), to * scales);
    });
  });
  return result;
}

/** Bytes of levels and number of scales of one row. */
export function blockSizes({ bits, blockSize }: BlockFormat, columns: number) {
  const scales = Math.ceil(columns / blockSize);
  return { levels: (scales * blockSize * bits) / 8, scales };
}

/** Rows that lie this close together are read at once, and those between them are dropped. */
const MAX_GAP = 64;

/** Reads runs of neighbouring rows. `each` visits the wanted ones: target index, index in the run. */
async function gather(
  indices: Int32Array,
  read: (
    start: number,
    length: number,
    each: (visit: (to: number, row: number) => void) => void,
  ) => Promise<void>,
): Promise<void> {
  const order = Int32Array.from(indices.keys()).sort((a, b) => indices[a]! - indices[b]!);
  for (let from = 0; from < order.length; ) {
    const start = indices[order[from]!]!;
    let to = from + 1;
    while (to < order.length && indices[order[to]!]! - indices[order[to - 1]!]! <= MAX_GAP) to++;
    const run = order.subarray(from, to);
    await read(start, indices[order[to - 1]!]! - start + 1, (visit) => {
      for (const target of run) visit(target, indices[target]! - start);
    });
    from = to;
  }
}

/** The matrix times a number. Blocks keep their levels. */
export function times(matrix: Matrix, factor: number): Matrix {
  if (factor === 1) return matrix;
  const { blocks } = matrix;
  return {
    ...matrix,
    blocks: blocks && {
      ...blocks,
      read: async (first, count) => {
        const { levels, scales } = await blocks.read(first, count);
        return { levels, scales: scales.map((scale) => scale * factor) };
      },
    },
    readRows: async (first, count) => (await matrix.readRows(first, count)).map((value) => value * factor),
  };
}

/** Matrices below one another. Blocks survive only if all have the same format. */
export function stack(parts: readonly Matrix[]): Matrix {
  const [first] = parts;
  const areAlike = parts.every(({ blocks }) => JSON.stringify(blocks) === JSON.stringify(first!.blocks));
  const format = areAlike ? first!.blocks : null;
  const within = async <T>(
    start: number,
    count: number,
    read: (part: Matrix, at: number, rows: number) => Promise<T>,
  ) => {
    const results: T[] = [];
    let begin = 0;
    for (const part of parts) {
      const from = Math.max(start, begin);
      const to = Math.min(start + count, begin + part.rows);
      if (from < to) results.push(await read(part, from - begin, to - from));
      begin += part.rows;
    }
    return results;
  };
  return {
    name: first!.name,
    rows: parts.reduce((sum, { rows }) => sum + rows, 0),
    columns: first!.columns,
    blocks: format && {
      ...format,
      read: async (start, count) => {
        const rows = await within(start, count, (part, at, length) => part.blocks!.read(at, length));
        return {
          levels: joinedBytes(rows.map(({ levels }) => levels)),
          scales: joinFloats(rows.map(({ scales }) => scales)),
        };
      },
    },
    readRows: async (start, count) =>
      joinFloats(await within(start, count, (part, at, rows) => part.readRows(at, rows))),
  };
}

export function joinFloats(parts: readonly Float32Array[]): Float32Array {
  if (parts.length === 1) return parts[0]!;
  const result = new Float32Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    result.set(part, at);
    at += part.length;
  }
  return result;
}
