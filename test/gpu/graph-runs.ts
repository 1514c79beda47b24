import { readModelConfig } from '../../origin/model/config/model-config.ts';
import { findDecoder } from '../../origin/model/config/model-files.ts';
import { LAST_POSITIONS, TOTAL_LENGTH } from '../../origin/model/onnx/attention-lengths.ts';
import { ElementType } from '../../origin/model/onnx/onnx-graph.ts';
import { LOGITS_INDEX } from '../../origin/model/onnx/onnx-patch.ts';
import { patchDecoder } from '../../origin/model/open/patch-decoder.ts';
import { sameBits } from '../../origin/model/open/row-probe.ts';
import type { CudaCopies } from '../../origin/model/ort/cuda-copies.ts';
import { readGraphFile } from '../../origin/model/ort/graph-file.ts';
import { arrayTensor } from '../../origin/model/ort/ort-binding.ts';
import type { OrtApi } from '../../origin/model/ort/ort-capi.ts';
import type { OrtDevice } from '../../origin/model/ort/ort-device.ts';
import { OrtSession } from '../../origin/model/ort/ort-session.ts';
import { CudaKvCopier } from '../../origin/model/runner/cuda-kv-copier.ts';
import { describeDecoder } from '../../origin/model/runner/decoder-interface.ts';
import { DeviceKvCache } from '../../origin/model/runner/device-kv-cache.ts';
import { kvLayout } from '../../origin/model/runner/kv-cache.ts';

export interface GraphSetting {
  readonly api: OrtApi;
  readonly device: OrtDevice;
  readonly directory: string;
  /** Copies in the memory of the device; disposed at the end. */
  readonly copies: CudaCopies;
  readonly rows: number;
  readonly steps: number;
  readonly contextLength: number;
  /** Milliseconds, monotonic. */
  readonly now: () => number;
}

export interface GraphRuns {
  /** Of each step: [rows, vocabulary]. */
  readonly logits: readonly Float32Array[];
  /** Of each run, without its copies. */
  readonly milliseconds: readonly number[];
}

export const tokenOf = (step: number, row: number, vocabularySize: number) =>
  (step * 31 + row * 17 + 7) % vocabularySize;

/**
 * Decodes from position 0 on as CUDA graphs require it: inputs and logits at fixed addresses of the device, refreshed by one
 * copy per step, a constant total length, one thread.
 */
export function decodeOnDevice(setting: GraphSetting): GraphRuns {
  const { api, device, directory, copies, rows, steps, contextLength, now } = setting;
  const { file: name, names } = findDecoder(directory);
  const file = readGraphFile(directory, name);
  const decoder = describeDecoder(file.graph, readModelConfig(directory), names);
  const { vocabularySize, tokenInput, positionIds } = decoder;
  const { model, logits } = patchDecoder(file, decoder, 'cuda');
  const session = new OrtSession(api, model, { threads: 1, directory: file.folder, device });
  const copier = new CudaKvCopier(copies);
  const memory = session.createDeviceMemory();
  const binding = session.createBinding();
  try {
    const cache = new DeviceKvCache(memory, copier, decoder, kvLayout(decoder, rows, contextLength));
    const inputBytes = (3 * 8 + 4) * rows;
    const logitsBytes = 4 * rows * vocabularySize;
    const [inputsAt, logitsAt] = [memory.allocate(inputBytes), memory.allocate(logitsBytes)];
    const int64 = { elementType: ElementType.int64, elementBytes: 8, memory: memory.info };
    const part = (index: number, dimensions: readonly number[]) => ({
      ...int64,
      address: memory.at(inputsAt, index * 8 * rows),
      dimensions,
    });
    binding.input(tokenInput, part(0, [rows, 1]));
    if (positionIds !== null) binding.input(positionIds, part(1, [rows, 1]));
    binding.input(LOGITS_INDEX, part(2, [rows]));
    const int32 = { elementType: ElementType.int32, elementBytes: 4 };
    binding.input(LAST_POSITIONS, { ...part(3, [rows]), ...int32 });
    const length = new Int32Array(new ArrayBuffer(4)).fill(contextLength);
    binding.input(TOTAL_LENGTH, arrayTensor(api, length, []));
    const float32 = { elementType: ElementType.float32, elementBytes: 4, memory: memory.info };
    binding.output(logits, { ...float32, address: logitsAt, dimensions: [rows, vocabularySize] });
    cache.bind(binding, 0, rows);

    const inputs = Buffer.alloc(inputBytes);
    const results: Float32Array[] = [];
    const milliseconds: number[] = [];
    for (let step = 0; step < steps; step++) {
      for (let row = 0; row < rows; row++) {
        inputs.writeBigInt64LE(BigInt(tokenOf(step, row, vocabularySize)), 8 * row);
        inputs.writeBigInt64LE(BigInt(step), 8 * (rows + row));
        inputs.writeBigInt64LE(BigInt(row), 8 * (2 * rows + row));
        inputs.writeInt32LE(step, 8 * 3 * rows + 4 * row);
      }
      toDevice(copies, inputs, inputsAt);
      const start = now();
      session.run(binding);
      milliseconds.push(now() - start);
      results.push(new Float32Array(fromDevice(copies, logitsAt, logitsBytes).buffer));
    }
    return { logits: results, milliseconds };
  } finally {
    binding.dispose();
    memory.dispose();
    copier.dispose();
    session.dispose();
  }
}

/** Says whether two series of logits have the same bits; if not, where they differ first and by how much at most. */
export function compareRuns(eager: readonly Float32Array[], replayed: readonly Float32Array[]): string {
  const step = eager.findIndex((logits, at) => !sameBits(logits, replayed[at]!));
  if (step < 0) return 'same bits';
  const worst = eager[step]!.reduce(
    (most, value, at) => Math.max(most, Math.abs(value - replayed[step]![at]!)),
    0,
  );
  return `step ${step} differs by ${worst}`;
}

function toDevice(copies: CudaCopies, bytes: Uint8Array, address: bigint): void {
  const host = copies.hostMemory(bytes.length);
  host.bytes.set(bytes);
  copy(copies, { where: 'host', address: host.address }, { where: 'device', address }, bytes.length);
}

function fromDevice(copies: CudaCopies, address: bigint, length: number): Uint8Array<ArrayBuffer> {
  const host = copies.hostMemory(length);
  copy(copies, { where: 'device', address }, { where: 'host', address: host.address }, length);
  const bytes = new Uint8Array(new ArrayBuffer(length));
  bytes.set(host.bytes);
  return bytes;
}

interface Place {
  readonly where: 'host' | 'device';
  readonly address: bigint;
}

const copy = (copies: CudaCopies, from: Place, to: Place, length: number) =>
  copies.copy([{ from: { ...from, pitch: length }, to: { ...to, pitch: length } }], length, 1);
