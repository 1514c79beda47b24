import { encodeNode, encodeTensor } from '../../../origin/model/onnx/onnx-encode.ts';
import { ElementType, GraphField, ModelField } from '../../../origin/model/onnx/onnx-graph.ts';
import { encodeInteger, encodeMessage, encodeString } from '../../../origin/model/onnx/wire-format.ts';
import { arrayTensor } from '../../../origin/model/ort/bound-tensors.ts';
import { openOrtApi } from '../../../origin/model/ort/ort-capi.ts';
import type { OrtDevice } from '../../../origin/model/ort/ort-device.ts';
import { OrtSession } from '../../../origin/model/ort/ort-session.ts';

/**
 * Each pass reads and writes a matrix of float32: 1 GiB on CUDA, more than its caches; elsewhere less than
 * WebGPU's largest binding.
 */
const ROWS = { cuda: 262_144, webgpu: 16_384, cpu: 16_384 } as const;
const COLUMNS = 1024;
const PASSES = 20;
const RUNS = 5;

/**
 * Returns the device's memory bandwidth in bytes read and written per second: the best of a few runs. The
 * graph takes the absolute value of a matrix repeatedly and returns one row.
 */
export function measureBandwidth(device: OrtDevice, now: () => number): number {
  const api = openOrtApi();
  const rows = ROWS[device.provider];
  const session = new OrtSession(api, passesGraph(rows), { threads: 2, directory: '', device });
  const memory = session.createDeviceMemory();
  const float32 = { elementType: ElementType.float32, elementBytes: 4 };
  const row = new BigInt64Array(new ArrayBuffer(8));
  const result = new Float32Array(new ArrayBuffer(4 * COLUMNS));
  const binding = session.createBinding();
  try {
    const address = memory.allocate(4 * rows * COLUMNS);
    binding.input('values', { ...float32, address, dimensions: [rows, COLUMNS], memory: memory.info });
    binding.input('row', arrayTensor(api, row, [1]));
    binding.output('result', arrayTensor(api, result, [1, COLUMNS]));
    session.run(binding);
    let best = 0;
    for (let run = 0; run < RUNS; run++) {
      const start = now();
      session.run(binding);
      best = Math.max(best, (2 * PASSES * 4 * rows * COLUMNS) / ((now() - start) / 1000));
    }
    return best;
  } finally {
    binding.dispose();
    memory.dispose();
    session.dispose();
  }
}

function passesGraph(rows: number): Uint8Array {
  const name = (pass: number) => (pass === 0 ? 'values' : `values_${pass}`);
  const float32 = { elementType: ElementType.float32 };
  const row = { name: 'row', elementType: ElementType.int64, dimensions: [1] };
  const graph = [
    ...Array.from({ length: PASSES }, (_, pass) => encodeNode('Abs', [name(pass)], name(pass + 1))),
    encodeNode('Gather', [name(PASSES), 'row'], 'result'),
    encodeString(2, 'bandwidth'),
    encodeTensor(GraphField.input, { ...float32, name: 'values', dimensions: [rows, COLUMNS] }),
    encodeTensor(GraphField.input, row),
    encodeTensor(GraphField.output, { ...float32, name: 'result', dimensions: [1, COLUMNS] }),
  ];
  return Buffer.concat([
    encodeInteger(1, 8),
    encodeMessage(ModelField.graph, graph),
    encodeMessage(8, [encodeInteger(2, 18)]),
  ]);
}
