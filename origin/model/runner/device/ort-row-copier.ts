import {
  FROM_ROWS,
  resultName,
  rowCopyGraph,
  sourceName,
  TO_ROWS,
  targetName,
} from '../../onnx/row-copy-graph.ts';
import { arrayTensor, type BoundTensor, type HostMemory } from '../../ort/bound-tensors.ts';
import type { OrtSession } from '../../ort/ort-session.ts';
import { type DeviceRows, type KvCopier, type RowCount, rowBytes } from '../kv-copier.ts';

interface Rows {
  readonly matrices: readonly BoundTensor[];
  readonly first: number;
  readonly stride: number;
}

/**
 * Copies rows with ONNX Runtime on any device. The C API copies only whole tensors, so a `rowCopyGraph` does
 * it. Owns its sessions.
 */
export class OrtRowCopier implements KvCopier {
  readonly #api: HostMemory;
  readonly #open: (graph: Uint8Array) => OrtSession;
  /** By number and type of the matrices. */
  readonly #sessions = new Map<string, OrtSession>();

  constructor(api: HostMemory, open: (graph: Uint8Array) => OrtSession) {
    this.#api = api;
    this.#open = open;
  }

  copy(from: Rows, to: Rows, count: RowCount): void {
    const session = this.#sessionFor(from.matrices);
    using binding = session.createBinding();
    binding.input(FROM_ROWS, this.#indices(from, count, []));
    binding.input(TO_ROWS, this.#indices(to, count, [1]));
    for (const [index, source] of from.matrices.entries()) {
      binding.input(sourceName(index), source);
      binding.inPlace(targetName(index), [resultName(index)], to.matrices[index]!);
    }
    session.run(binding);
  }

  read(from: DeviceRows, bytes: Uint8Array, count: RowCount): void {
    this.copy(from, this.#onHost(bytes, from, count), count);
  }

  write(bytes: Uint8Array, to: DeviceRows, count: RowCount): void {
    this.copy(this.#onHost(bytes, to, count), to, count);
  }

  dispose(): void {
    for (const session of this.#sessions.values()) session.dispose();
    this.#sessions.clear();
  }

  #sessionFor({ length, 0: first }: readonly BoundTensor[]): OrtSession {
    const { elementType } = first!;
    const key = `${length} of ${elementType}`;
    const session = this.#sessions.get(key) ?? this.#open(rowCopyGraph(length, elementType));
    this.#sessions.set(key, session);
    return session;
  }

  /** Describes host memory as matrices with the rows of `like` and without gaps. */
  #onHost(owner: Uint8Array, like: DeviceRows, { heads, length }: RowCount): Rows {
    const rows = heads * length;
    const address = this.#api.addressOf(owner);
    const matrices = like.matrices.map((matrix, index) => ({
      owner,
      address: address + BigInt(index * rows * rowBytes(matrix)),
      elementType: matrix.elementType,
      elementBytes: matrix.elementBytes,
      dimensions: [rows, matrix.dimensions[1]!],
    }));
    return { matrices, first: 0, stride: length };
  }

  #indices({ first, stride }: Rows, { heads, length }: RowCount, width: readonly number[]): BoundTensor {
    const rows = new BigInt64Array(new ArrayBuffer(8 * heads * length));
    // The low halves: a BigInt per row would be garbage.
    const low = new Int32Array(rows.buffer);
    for (let head = 0; head < heads; head++) {
      const start = first + head * stride;
      for (let i = 0; i < length; i++) low[2 * (head * length + i)] = start + i;
    }
    return arrayTensor(this.#api, rows, [rows.length, ...width]);
  }
}
