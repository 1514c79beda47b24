import type { DeviceTensor } from '../../ort/bound-tensors.ts';
import type { CudaCopies, HostMemory, Plane } from '../../ort/cuda-copies.ts';
import { type DeviceRows, type KvCopier, type RowCount, rowBytes } from '../kv-copier.ts';

/**
 * Copies KV with the driver: one strided copy per matrix. Host bytes pass page-locked memory. Copies wait for
 * no work of the card, so the caller first waits for what uses the same positions.
 */
export class CudaKvCopier implements KvCopier {
  readonly #copies: CudaCopies;
  #host: HostMemory | null = null;

  constructor(copies: CudaCopies) {
    this.#copies = copies;
  }

  copy(from: DeviceRows, to: DeviceRows, count: RowCount): void {
    this.#copy(planesOf(from), planesOf(to), from, count);
  }

  read(from: DeviceRows, bytes: Uint8Array, count: RowCount): void {
    const host = this.#hostMemory(bytes.length);
    this.#copy(planesOf(from), hostPlanes(host.address, from, count), from, count);
    bytes.set(host.bytes.subarray(0, bytes.length));
  }

  write(bytes: Uint8Array, to: DeviceRows, count: RowCount): void {
    const host = this.#hostMemory(bytes.length);
    host.bytes.set(bytes);
    this.#copy(hostPlanes(host.address, to, count), planesOf(to), to, count);
  }

  clear(matrices: readonly DeviceTensor[]): void {
    this.#copies.perform((work) => {
      for (const { address, dimensions, elementBytes } of matrices)
        work.clear(
          address,
          dimensions.reduce((product, size) => product * size, elementBytes),
        );
    });
  }

  dispose(): void {
    this.#copies.dispose();
  }

  #hostMemory(bytes: number): HostMemory {
    if (this.#host !== null && this.#host.bytes.length >= bytes) return this.#host;
    this.#host?.free();
    this.#host = null;
    return (this.#host = this.#copies.hostMemory(bytes));
  }

  #copy(
    from: readonly Plane[],
    to: readonly Plane[],
    { matrices }: DeviceRows,
    { heads, length }: RowCount,
  ): void {
    const width = length * rowBytes(matrices[0]!);
    this.#copies.perform((work) => {
      for (const [index, plane] of from.entries()) work.copy(plane, to[index]!, width, heads);
    });
  }
}

const planesOf = ({ matrices, first, stride }: DeviceRows): Plane[] =>
  matrices.map((matrix) => ({
    where: 'device',
    address: matrix.address + BigInt(first * rowBytes(matrix)),
    pitch: stride * rowBytes(matrix),
  }));

/** Planes without gaps, one after the other. */
const hostPlanes = (address: bigint, { matrices }: DeviceRows, { heads, length }: RowCount): Plane[] =>
  matrices.map((matrix, index) => ({
    where: 'host',
    address: address + BigInt(index * heads * length * rowBytes(matrix)),
    pitch: length * rowBytes(matrix),
  }));
