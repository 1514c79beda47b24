import koffi from 'koffi';
import { expect, it, onTestFinished } from 'vitest';
import { TOTAL_LENGTH } from '../../../../../origin/model/config/decoder-names.ts';
import type { DecodeBatch } from '../../../../../origin/model/model-runner.ts';
import { type OrtApi, openOrtApi } from '../../../../../origin/model/ort/ort-capi.ts';
import { GraphRunner } from '../../../../../origin/model/runner/device/graph-runner.ts';
import { buildFakeCudaDriver, hasCompiler } from '../../../../support/fake-cuda-driver.ts';
import { writeSyntheticModel } from '../../../../support/synthetic/synthetic-model.ts';
import { driverRunner } from '../../../../tools/gpu/runners.ts';
import { temporaryDirectory } from '../../synthetic-runner.ts';

const shape = { vocabularySize: 1, contextLength: 64, slots: 8, prefillChunk: 8, minRows: 1 };
type Parts = ConstructorParameters<typeof GraphRunner>[0];

/** A runner that computes nothing, and what was asked of its parts: the positions of each batch. */
function recording() {
  const asked: { readonly by: string; readonly positions: readonly number[] }[] = [];
  const decode =
    (by: string) =>
    ({ rows, positions }: DecodeBatch) => {
      asked.push({ by, positions: [...positions.subarray(0, rows)] });
      return new Float32Array(rows);
    };
  const rowsFor = (rows: number) => [1, 2, 4, 8].find((bound) => bound >= rows);
  const parts = {
    prefiller: { shape, prefillTogether: async () => new Float32Array(), copy: () => {} },
    graphs: {
      rowsFor,
      decode: decode('graph'),
      decodeOrdinary: decode('ordinary'),
      capture: () => {},
      settle: () => {},
      release: () => {},
    },
    prompts: { begin: () => null },
  };
  return { runner: new GraphRunner(parts as unknown as Parts), asked };
}

const batch = (firstSlot: number, ...positions: number[]): DecodeBatch => {
  const values = Int32Array.from(positions);
  return { firstSlot, rows: positions.length, tokens: values, positions: values };
};

it('a batch gets the rows of the next graph from slot 0 on; they write after the KV of their slots', async () => {
  const { runner, asked } = recording();
  runner.capture();
  const { signal } = new AbortController();
  await runner.prefill({ slot: 0, start: 0, tokens: new Int32Array(5), logitsAt: new Int32Array() }, signal);
  runner.copy(0, 3, 4);
  for (const position of [9, 10]) runner.decode(batch(1, position, position + 20));
  runner.decode(batch(0, 5, 11, 31));
  expect(asked).toEqual([
    { by: 'graph', positions: [5, 9, 29, 4] },
    { by: 'graph', positions: [5, 10, 30, 4] },
    { by: 'graph', positions: [5, 11, 31, 4] },
  ]);
});

it('a batch runs without a graph if more than half of the rows would be idle, and before the capture', () => {
  const { runner, asked } = recording();
  runner.decode(batch(0, 7));
  expect(runner.usesGraphs).toBe(false);
  runner.capture();
  expect(runner.usesGraphs).toBe(true);
  runner.decode(batch(4, 1, 2, 3));
  runner.decode(batch(3, 1, 2, 3, 4));
  expect(asked.map(({ by, positions }) => [by, positions.length])).toEqual([
    ['ordinary', 1],
    ['ordinary', 3],
    ['graph', 8],
  ]);
});

it.runIf(hasCompiler)('after the capture, no run without a graph keeps anything on the device', () => {
  const directory = temporaryDirectory();
  writeSyntheticModel(directory, { contextLength: 64 });
  const real = openOrtApi();
  const fromHost = new Set<bigint>();
  const copied = new Set<string>();
  const api: OrtApi = {
    ...real,
    CreateTensorWithDataAsOrtValue: (memory, ...rest) => {
      const value = real.CreateTensorWithDataAsOrtValue(memory, ...rest);
      if (host.has(memory!)) fromHost.add(value);
      else fromHost.delete(value);
      return value;
    },
    CreateCpuMemoryInfo: (...kind) => {
      const info = real.CreateCpuMemoryInfo(...kind);
      host.add(info);
      return info;
    },
    BindInput: (binding, name, value) => {
      if (fromHost.has(value!)) copied.add(name);
      return real.BindInput(binding, name, value);
    },
  };
  const host = new Set<bigint>();
  const runner = driverRunner(directory, { slots: 8, prefillChunk: 32 }, buildFakeCudaDriver().file, api);
  onTestFinished(() => runner.dispose());
  copied.clear();
  void runner.decode(batch(5, 0));
  void runner.decode(batch(5, 1));
  // ONNX Runtime reads it in main memory.
  expect([...copied]).toEqual([TOTAL_LENGTH]);
});

it.runIf(hasCompiler)('a graph that does not follow its inputs is refused at the start', () => {
  const directory = temporaryDirectory();
  writeSyntheticModel(directory, { contextLength: 64 });
  const real = openOrtApi();
  const ids = new Map<bigint, number>();
  const runs = new Map<bigint, number>();
  const api: OrtApi = {
    ...real,
    AddRunConfigEntry: (options, key, value) => {
      ids.set(options!, Number(value));
      return real.AddRunConfigEntry(options, key, value);
    },
    RunWithBinding: (session, options, binding) => {
      const run = (runs.get(options ?? 0n) ?? 0) + 1;
      runs.set(options ?? 0n, run);
      // Replays of the graph of two rows compute nothing.
      if (options !== null && ids.get(options) === 2 && run > 3) return undefined;
      return real.RunWithBinding(session, options, binding);
    },
  };
  const open = (used: OrtApi) => {
    const runner = driverRunner(directory, { slots: 4, prefillChunk: 32 }, buildFakeCudaDriver().file, used);
    onTestFinished(() => runner.dispose());
  };
  expect(() => open(api)).toThrow('a CUDA graph of 2 rows gives other bits than an ordinary run');
  expect(() => open(real)).not.toThrow();
});

it.runIf(hasCompiler).each([
  ['the driver refuses the kernels', ['refuse_kernels_with', ['int'], 218], 'cuModuleLoadData'],
  ['the kernels compute wrong sums', ['spoil_sums', []], 'row 0 of 4: block 0 has another sum'],
] as const)('logits come as whole rows if %s', (_, [name, types, ...values], fault) => {
  const directory = temporaryDirectory();
  writeSyntheticModel(directory, { contextLength: 64 });
  const open = (file: string) => {
    const runner = driverRunner(directory, { slots: 4, prefillChunk: 32 }, file);
    onTestFinished(() => runner.dispose());
    return runner as GraphRunner;
  };
  const [right, faulty] = [buildFakeCudaDriver().file, buildFakeCudaDriver().file];
  const library = koffi.load(faulty);
  // Holds it until then: koffi unloads a library that is garbage.
  onTestFinished(() => library.unload());
  library.func(name, 'void', [...types])(...values);
  const [sparse, whole] = [open(right), open(faulty)];
  expect([sparse.sparse === null, sparse.sparseFault]).toEqual([false, null]);
  expect([whole.sparse, whole.sparseFault]).toEqual([null, expect.stringContaining(fault)]);
  const asked = { ...batch(0, 0, 0, 0, 0), coldness: [1, 1, null, 0.5] };
  expect(whole.decode(asked)).toEqual(sparse.decode(batch(0, 0, 0, 0, 0)));
});

it.runIf(hasCompiler)('the logits of a scored run come to page-locked memory', async () => {
  const directory = temporaryDirectory();
  writeSyntheticModel(directory, { contextLength: 64 });
  let locked: ArrayBuffer | null = null;
  const allocate = (length: number) => new Float32Array((locked = new ArrayBuffer(4 * length)));
  const { file } = buildFakeCudaDriver();
  const runner = driverRunner(directory, { slots: 2, prefillChunk: 64 }, file, openOrtApi(), allocate);
  onTestFinished(() => runner.dispose());
  const length = runner.shape.maxPromptLogits!;
  const chunk = {
    slot: 0,
    start: 0,
    tokens: new Int32Array(length),
    logitsAt: Int32Array.from({ length }, (_, at) => at),
  };
  const logits = await runner.prefill(chunk, new AbortController().signal);
  expect(logits.length).toBe(length * runner.shape.vocabularySize);
  expect(logits.buffer).toBe(locked);
});
