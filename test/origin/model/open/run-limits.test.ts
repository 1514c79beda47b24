import { describe, expect, it } from 'vitest';
import { readModelConfig } from '../../../../origin/model/config/model-config.ts';
import { textsOf } from '../../../../origin/model/config/model-directory.ts';
import {
  type DecoderInterface,
  describeDecoder,
} from '../../../../origin/model/decoder/decoder-interface.ts';
import { faultKind } from '../../../../origin/model/model-runner.ts';
import {
  freeBytes,
  kvShare,
  prefillChunkOf,
  requireDeviceMemory,
} from '../../../../origin/model/open/run-limits.ts';
import { startRunner } from '../../../../origin/model/open/start-runner.ts';
import { readGraphFile } from '../../../../origin/model/ort/graph-file.ts';
import { ortFault } from '../../../../origin/model/ort/ort-fault.ts';
import type { OrtSession } from '../../../../origin/model/ort/ort-session.ts';
import { kvLayout, OutOfMemoryError } from '../../../../origin/model/runner/kv-cache.ts';
import { writeSyntheticModel } from '../../../support/synthetic/synthetic-model.ts';
import { prefillPrompt, randomTokens, syntheticRunner, temporaryDirectory } from '../synthetic-runner.ts';

const GIB = 2 ** 30;

describe('the chunk of a prefill run', () => {
  const adapter = (minSubgroupSize: number) => ({ name: 'one', isGpu: true, minSubgroupSize });

  it('belongs to the provider', () => {
    expect(prefillChunkOf('cpu', () => [])).toBe(32);
    expect(prefillChunkOf('cuda', () => [])).toBe(512);
  });

  it.each([
    { found: [adapter(32)], chunk: 128 },
    { found: [adapter(64), adapter(32)], chunk: 128 },
    { found: [adapter(32), adapter(8)], chunk: 31 },
    { found: [adapter(0)], chunk: 31 },
    { found: [], chunk: 31 },
  ])('is 31 on WebGPU if an adapter may have narrow subgroups: $found', ({ found, chunk }) => {
    expect(prefillChunkOf('webgpu', () => found)).toBe(chunk);
  });
});

function decoderOf(): { directory: string; decoder: DecoderInterface } {
  const directory = temporaryDirectory();
  writeSyntheticModel(directory, { contextLength: 64 });
  const { graph } = readGraphFile(directory, 'model.onnx');
  return { directory, decoder: describeDecoder(graph, readModelConfig(textsOf(directory))) };
}

describe('memory of a card', () => {
  const layout = {
    slots: 8,
    spareSlots: 0,
    contextLength: 2048,
    positionBytes: 2 ** 16,
    stateBytes: 0,
    totalBytes: GIB,
  };

  it('is free up to the operator’s limit; auto without a driver counts main memory, WebGPU reports none; KV caches take nine tenths, or half of main memory', () => {
    const cards = ['A', 'B'].map((name) => ({ name, capability: [9, 0] as const }));
    const card = {
      driver: () => ({ version: 13_000, cards, freeBytes: (id: number) => (8 + id) * GIB }),
    };
    const none = {
      driver: (): never => {
        throw new Error('is missing');
      },
    };
    const cuda = { provider: 'cuda', deviceId: 1, memoryBytes: null } as const;
    expect(freeBytes(cuda, card)).toBe(8.5 * GIB);
    expect(freeBytes({ ...cuda, deviceId: null, memoryBytes: GIB }, card)).toBe(GIB);
    expect(freeBytes(cuda, none)).toBeNull();
    const main = freeBytes({ ...cuda, provider: 'auto' }, none);
    expect(main).toBeGreaterThan(0);
    expect(freeBytes({ ...cuda, provider: 'cpu' }, none)).toBeGreaterThan(0);
    expect(freeBytes({ ...cuda, provider: 'webgpu' }, card)).toBeNull();
    const shares = (['cpu', 'cuda', 'webgpu', 'auto'] as const).map((provider) =>
      [card, none].map((machine) => kvShare({ ...cuda, provider }, machine)),
    );
    expect(shares).toEqual([
      [0.5, 0.5],
      [0.9, 0.9],
      [0.9, 0.9],
      [0.9, 0.5],
    ]);
  });

  it('must hold everything before anything is loaded; the error names each part', () => {
    const need = { weightBytes: 2 * GIB, layout, runBytes: GIB };
    const card = (freeBytes: number) => ({ name: 'Card A (CUDA card 0)', freeBytes });
    requireDeviceMemory(need, card(5 * GIB), null);
    requireDeviceMemory(need, card(5 * GIB), 4 * GIB);
    expect(() => requireDeviceMemory(need, card(4 * GIB), null)).toThrow(
      new OutOfMemoryError(
        'the model needs 4096 MiB on Card A (CUDA card 0), but 4096 MiB are free, 512 MiB of them for CUDA: ' +
          '2048 MiB of weights, 1024 MiB for runs, KV cache 8 slots × 2048 positions × 65536 bytes = 1024 MiB; ' +
          'set CONTINUO_SLOTS or CONTINUO_CONTEXT lower',
      ),
    );
    expect(() => requireDeviceMemory(need, card(9 * GIB), 3 * GIB)).toThrow('but the limit is 3072 MiB');
  });
});

/** A session on a card that fails with this message when the KV cache is allocated. */
function failingSession(message: string): OrtSession {
  return {
    copiesInputs: true,
    device: { provider: 'cuda', deviceId: 0, memoryBytes: null },
    inputMemories: () => [],
    get api(): never {
      throw ortFault(6, message);
    },
    dispose: () => undefined,
  } as unknown as OrtSession;
}

it.each([
  ['CUDA failure 2: out of memory', 'out-of-memory', '; set CONTINUO_SLOTS or CONTINUO_CONTEXT lower'],
  ['CUBLAS failure 1: CUBLAS_STATUS_NOT_INITIALIZED', 'other', ''],
])('a failure while loading is reported as what it is: %s', async (message, kind, advice) => {
  const { decoder } = decoderOf();
  const options = { decoder, logits: 'logits', layout: kvLayout(decoder, 2, 64), prefillChunk: 8 };
  const graph = { inputs: [], outputs: [], nodes: [], initializers: new Map(), scalars: new Map() };
  const started = startRunner(failingSession(message), options, { file: 'model.onnx', graph });
  const error = await started.catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({
    message: `cuda cannot start model.onnx with a KV cache of 2 slots × 64 positions × 512 bytes = 1 MiB: ${message}${advice}`,
  });
  expect(faultKind(error)).toBe(kind);
});

it('a chunk that needs more logits than a runner keeps memory for gets the same bits', async () => {
  const { runner } = await syntheticRunner({}, { prefillChunk: 100, slots: 2 });
  const tokens = randomTokens(100, 3);
  const last = await prefillPrompt(runner, 0, tokens);
  const logitsAt = Int32Array.from(tokens.keys());
  const signal = new AbortController().signal;
  const all = await runner.prefill({ slot: 1, start: 0, tokens, logitsAt }, signal);
  expect(all).toHaveLength(100 * 256);
  expect(all.slice(99 * 256)).toEqual(last);
});
