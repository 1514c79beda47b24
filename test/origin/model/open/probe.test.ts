import { expect, it } from 'vitest';
import type {
  DecodeBatch,
  ModelRunner,
  ModelShape,
  PrefillChunk,
} from '../../../../origin/model/model-runner.ts';
import { requireFiniteLogits } from '../../../../origin/model/open/probe.ts';

const SHAPE = { vocabularySize: 8, contextLength: 100, slots: 3, prefillChunk: 32, minRows: 1 };

/** Records the positions of each run. */
async function probed(place: 'start' | 'end', shape: ModelShape = SHAPE, chunks = 1): Promise<number[][]> {
  const runs: number[][] = [];
  const runner = {
    shape,
    decode: ({ positions, rows }) => {
      runs.push([...positions.subarray(0, rows)]);
      return new Float32Array(rows * shape.vocabularySize);
    },
    prefill: async ({ start, tokens, logitsAt }) => {
      runs.push([start, start + tokens.length - 1, logitsAt.length]);
      return new Float32Array(logitsAt.length * shape.vocabularySize);
    },
  } as Pick<ModelRunner, 'shape' | 'decode' | 'prefill'> as ModelRunner;
  await requireFiniteLogits(runner, 'model.onnx', { place, chunks });
  return runs;
}

it('the probe of a device decodes all slots at the last position, then prefills up to it', async () => {
  expect(await probed('end')).toEqual([
    [99, 99, 99],
    [67, 98, 32],
    [99, 99, 1],
  ]);
});

it('the probe of a card prefills as many chunks as a run has, with as many logits', async () => {
  expect(await probed('end', { ...SHAPE, maxPromptLogits: 8 }, 2)).toEqual([
    [99, 99, 99],
    [35, 98, 8],
    [99, 99, 1],
  ]);
});

it('a chunk as long as the context is probed without a token after it', async () => {
  expect(await probed('end', { ...SHAPE, contextLength: 1 })).toEqual([
    [0, 0, 0],
    [0, 0, 1],
  ]);
});

it('the probe of the CPU stays at the start, so that it takes no memory of later positions', async () => {
  expect(await probed('start')).toEqual([
    [0, 0, 0],
    [0, 31, 32],
    [32, 32, 1],
  ]);
});

it('the probe of a device gives each slot a state to go on from', async () => {
  const written: number[][] = [];
  const runner = {
    shape: SHAPE,
    states: {
      bytes: 4,
      write: (slot: number, position: number, bytes: Uint8Array) => written.push([slot, position, ...bytes]),
    },
    decode: ({ rows }: DecodeBatch) => new Float32Array(rows * SHAPE.vocabularySize),
    prefill: async ({ logitsAt }: PrefillChunk) => new Float32Array(logitsAt.length * SHAPE.vocabularySize),
  } as Partial<Record<keyof ModelRunner, unknown>> as ModelRunner;
  await requireFiniteLogits(runner, 'model.onnx', { place: 'end', chunks: 1 });
  const zeros = [0, 0, 0, 0];
  expect(written).toEqual([...[0, 1, 2].map((slot) => [slot, 99, ...zeros]), [0, 67, ...zeros]]);
  written.length = 0;
  await requireFiniteLogits(runner, 'model.onnx', { place: 'start', chunks: 1 });
  expect(written).toEqual([]);
});
