import type { DeviceTensor } from '../ort/bound-tensors.ts';

/** Rows of each head in matrices [rows, width], one matrix per layer and kind. */
export interface DeviceRows {
  readonly matrices: readonly DeviceTensor[];
  /** The first row of the first head. */
  readonly first: number;
  /** Rows from the first row of a head to that of the next. */
  readonly stride: number;
}

export interface RowCount {
  readonly heads: number;
  /** Consecutive rows of each head. */
  readonly length: number;
}

/** Copies KV within the memory of a device, and between it and the host. Calls end when copies are done. */
export interface KvCopier {
  copy(from: DeviceRows, to: DeviceRows, count: RowCount): void;
  /** @param bytes receives [matrices, heads, length, width] */
  read(from: DeviceRows, bytes: Uint8Array, count: RowCount): void;
  write(bytes: Uint8Array, to: DeviceRows, count: RowCount): void;
  /** Fills matrices with zeros. Absent = the device cannot, so zeros are written. */
  clear?(matrices: readonly DeviceTensor[]): void;
  dispose(): void;
}

export const rowBytes = ({ elementBytes, dimensions }: DeviceTensor): number => elementBytes * dimensions[1]!;
