import { beforeAll, describe, expect, it } from 'vitest';
import { readModelConfig } from '../../../origin/model/config/model-config.ts';
import { textsOf } from '../../../origin/model/config/model-directory.ts';
import { describeDecoder } from '../../../origin/model/decoder/decoder-interface.ts';
import { OrtConcatRunner } from '../../../origin/model/foreign/ort-concat-runner.ts';
import { patchDecoder } from '../../../origin/model/foreign/patch-decoder.ts';
import { RunTerminated } from '../../../origin/model/model-runner.ts';
import { startRunner } from '../../../origin/model/open/start-runner.ts';
import { readGraphFile } from '../../../origin/model/ort/graph-file.ts';
import { type OrtApi, openOrtApi } from '../../../origin/model/ort/ort-capi.ts';
import { openLibrary } from '../../../origin/model/ort/ort-library.ts';
import { OrtSession } from '../../../origin/model/ort/ort-session.ts';
import { kvLayout } from '../../../origin/model/runner/kv-cache.ts';
import { OrtRunner } from '../../../origin/model/runner/ort-runner.ts';
import { buildFakeCudaDriver, hasCompiler } from '../../support/fake-cuda-driver.ts';
import { newDirectory } from '../../support/new-directory.ts';
import { writeSyntheticModel } from '../../support/synthetic/synthetic-model.ts';
import { cpuDeviceRunner, driverRunner } from '../../tools/gpu/runners.ts';
import { decodeRows, randomTokens, temporaryDirectory } from './synthetic-runner.ts';

/** The real table, counting the native objects alive by kind: Env, Session, Value, IoBinding … */
function countingApi(): { api: OrtApi; alive: Map<string, number> } {
  const real = openOrtApi();
  const alive = new Map<string, number>();
  const count = (kind: string, change: number) => alive.set(kind, (alive.get(kind) ?? 0) + change);
  const kindOf = (name: string) => {
    if (/^Create(Session|SessionFromArray)$/.test(name)) return 'Session';
    if (name === 'CreateTensorWithDataAsOrtValue') return 'Value';
    return name.replace(/^(Create|Release)(Cpu)?/, '');
  };
  const counted = Object.entries(real).map(([name, value]) => {
    if (typeof value !== 'function' || !/^(Create|Release)/.test(name)) return [name, value];
    const call = value as (...args: unknown[]) => unknown;
    return [
      name,
      (...args: unknown[]) => {
        const result = call(...args);
        count(kindOf(name), name.startsWith('Create') ? 1 : -1);
        return result;
      },
    ];
  });
  return { api: Object.fromEntries(counted), alive };
}

const SLOTS = 12;

type Attention = 'group-query' | 'concatenated';

function countingSession(attention: Attention) {
  const directory = temporaryDirectory();
  writeSyntheticModel(directory, { contextLength: 64, attention });
  const graphFile = readGraphFile(directory, 'model.onnx');
  const decoder = describeDecoder(graphFile.graph, readModelConfig(textsOf(directory)));
  const { api, alive } = countingApi();
  const { model, graph, logits } = patchDecoder(graphFile, decoder);
  const session = new OrtSession(api, model, { threads: 1, directory });
  const layout = kvLayout(decoder, SLOTS, 64);
  const loaded = { file: 'model.onnx', graph };
  return { session, options: { decoder, logits, layout, prefillChunk: 32 }, loaded, api, alive };
}

function countingRunner(attention: Attention = 'group-query') {
  const { session, options, ...counted } = countingSession(attention);
  const Runner = attention === 'group-query' ? OrtRunner : OrtConcatRunner;
  return { runner: new Runner(session, options), ...counted };
}

it('10,000 decode steps on changing slots do not accumulate native objects, and none outlives dispose', async () => {
  const { runner, alive } = countingRunner();
  let mostBindings = 0;
  for (let step = 0; step < 10_000; step++) {
    const rows = 1 + ((step * 7) % SLOTS);
    const firstSlot = (step * 5) % (SLOTS + 1 - rows);
    const one = { token: step % 256, position: (step * 3) % 64 };
    await decodeRows(runner, firstSlot, Array(rows).fill(one));
    expect(alive.get('Value')).toBe(0);
    mostBindings = Math.max(mostBindings, alive.get('IoBinding')!);
  }
  expect(mostBindings).toBeLessThanOrEqual(65);
  runner.dispose();
  expect(new Set(alive.values())).toEqual(new Set([0]));
});

it('a runner of concatenated pasts leaves no native object after a step or a refused step', async () => {
  const { runner, alive } = countingRunner('concatenated');
  for (let position = 0; position < 64; position++) {
    await decodeRows(runner, 0, Array(SLOTS).fill({ token: position, position }));
    expect([alive.get('Value'), alive.get('IoBinding')]).toEqual([0, 0]);
  }
  runner.copy(0, 1, 3);
  await expect(decodeRows(runner, 1, [{ token: 1, position: 4 }])).rejects.toThrow(
    'slot 1 has 3 positions, expected at least 4',
  );
  expect([alive.get('Value'), alive.get('IoBinding')]).toEqual([0, 0]);
  runner.dispose();
  expect(new Set(alive.values())).toEqual(new Set([0]));
});

it.each(['group-query', 'concatenated'] as const)(
  'a prefill leaves no native object, completed or aborted: %s',
  async (attention) => {
    const { runner, alive } = countingRunner(attention);
    const before = new Map(alive);
    for (let run = 0; run < 50; run++) {
      const controller = new AbortController();
      const chunk = { slot: 0, start: 0, tokens: randomTokens(32, run), logitsAt: Int32Array.of(31) };
      const prefill = runner.prefill(chunk, controller.signal);
      if (run % 2 === 0) controller.abort();
      const failure = await prefill.then(
        () => null,
        (thrown: unknown) => thrown,
      );
      // A run may be done before it can be stopped.
      if (run % 2 > 0) expect(failure).toBeNull();
      else if (failure !== null) expect(failure).toBeInstanceOf(RunTerminated);
      expect(alive.get('IoBinding')).toBe(0);
      expect(alive.get('Value')).toBe(0);
    }
    for (const [kind, count] of before) expect(alive.get(kind)).toBe(count);
    runner.dispose();
    expect(new Set(alive.values())).toEqual(new Set([0]));
  },
);

it.each(['group-query', 'concatenated'] as const)(
  'a tensor that cannot be bound leaves no native object: %s',
  async (attention) => {
    const { runner, api, alive } = countingRunner(attention);
    const BindOutput = () => {
      throw new Error('refused');
    };
    Object.assign(api, { BindOutput });
    await expect(decodeRows(runner, 0, [{ token: 1, position: 0 }])).rejects.toThrow('refused');
    const chunk = { slot: 0, start: 0, tokens: randomTokens(8, 1), logitsAt: Int32Array.of(7) };
    await expect(runner.prefill(chunk, new AbortController().signal)).rejects.toThrow('refused');
    expect([alive.get('Value'), alive.get('IoBinding')]).toEqual([0, 0]);
    runner.dispose();
    expect(new Set(alive.values())).toEqual(new Set([0]));
  },
);

it.each(['group-query', 'concatenated'] as const)(
  'a runner without memory for its logits leaves no native object: %s',
  async (attention) => {
    const { session, options, loaded, alive } = countingSession(attention);
    const allocateLogits = () => {
      throw new RangeError('no memory');
    };
    const started = startRunner(session, { ...options, allocateLogits }, loaded);
    await expect(started).rejects.toThrow('no memory');
    expect(new Set(alive.values())).toEqual(new Set([0]));
  },
);

it('a model that ONNX Runtime refuses leaves no native object', () => {
  const { api, alive } = countingApi();
  const options = { threads: 1, directory: temporaryDirectory() };
  expect(() => new OrtSession(api, Buffer.from('no model'), options)).toThrow();
  expect(new Set(alive.values())).toEqual(new Set([0]));
});

it.each([true, false])('a KV cache on a device leaves no native object: staged %s', async (staged) => {
  const directory = temporaryDirectory();
  writeSyntheticModel(directory, { contextLength: 64 });
  const { api, alive } = countingApi();
  const runner = cpuDeviceRunner(directory, { slots: 4, prefillChunk: 16 }, staged, api);
  const chunk = { slot: 2, start: 0, tokens: randomTokens(16, 1), logitsAt: Int32Array.of(15) };
  await runner.prefill(chunk, new AbortController().signal);
  runner.copy(2, 1, 16);
  await decodeRows(runner, 1, Array(2).fill({ token: 3, position: 16 }));
  expect(alive.get('Value')).toBe(0);
  runner.dispose();
  expect(new Set(alive.values())).toEqual(new Set([0]));
});

describe.runIf(hasCompiler)('a runner of a card that cannot be loaded', () => {
  const directory = newDirectory();
  let file: string;
  beforeAll(() => {
    writeSyntheticModel(directory, { contextLength: 64 });
    file = buildFakeCudaDriver().file;
  });

  /**
   * Makes one call after the other fail until a load has no more of them. The runner may do without some.
   * @param prepare makes the call fail after so many others, and returns whether it has failed
   * @returns how many failed
   */
  function failEach(prepare: (api: OrtApi, calls: number) => () => boolean): number {
    const live = openLibrary(file).func('live', 'int', []);
    for (let calls = 0; ; calls++) {
      const { api, alive } = countingApi();
      const hasFailed = prepare(api, calls);
      let fault: unknown = null;
      try {
        driverRunner(directory, { slots: 4, prefillChunk: 16 }, file, api, undefined, false).dispose();
      } catch (error) {
        fault = error;
      }
      const left = [...alive].filter(([, count]) => count !== 0);
      expect({ calls, fault, left, ofDriver: live() }).toEqual({ calls, fault, left: [], ofDriver: 0 });
      if (!hasFailed()) return calls;
    }
  }

  const takesMemory =
    /^(AllocatorAlloc|Bind|CreateSession(FromArray)?$|Create(Allocator|IoBinding|Tensor|MemoryInfo))/;

  it('leaves no native object, whichever memory ONNX Runtime lacks', () => {
    const failed = failEach((api, calls) => {
      let left = calls;
      for (const [name, value] of Object.entries(api)) {
        if (typeof value !== 'function' || !takesMemory.test(name)) continue;
        const call = value as (...args: unknown[]) => unknown;
        const refusing = (...args: unknown[]) => {
          if (left-- === 0) throw new Error(`refuses ${name}`);
          return call(...args);
        };
        Object.assign(api, { [name]: refusing });
      }
      return () => left < 0;
    });
    expect(failed).toBeGreaterThan(50);
  });

  it('leaves nothing of the driver, whichever memory it lacks', () => {
    const library = openLibrary(file);
    const lackAfter = library.func('lack_after', 'void', ['int']);
    const hasLacked = library.func('has_lacked', 'int', []);
    const failed = failEach((_, calls) => {
      lackAfter(calls);
      return () => hasLacked() === 1;
    });
    lackAfter(-1);
    expect(failed).toBeGreaterThan(8);
  });
});
