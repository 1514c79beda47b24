import { expect, it } from 'vitest';
import type { ModelRunner } from '../../../../origin/model/model-runner.ts';
import { requireFiniteLogits } from '../../../../origin/model/open/probe.ts';

const SHAPE = { vocabularySize: 8, contextLength: 100, slots: 3, prefillChunk: 32, minRows: 1 };

/** Records the positions of each run. */
async function probed(place: 'start' | 'end', shape = SHAPE): Promise<number[][]> {
  const runs: number[][] = [];
  const runner = {
    shape,
    decode: ({ positions, rows }) => {
      runs.push([...positions.subarray(0, rows)]);
      return new Float32Array(rows * shape.vocabularySize);
    },
    prefill: async ({ start, tokens, logitsAt }) => {
      runs.push([start, start + tokens.length - 1]);
      return new Float32Array(logitsAt.length * shape.vocabularySize);
    },
  } as Pick<ModelRunner, 'shape' | 'decode' | 'prefill'> as ModelRunner;
  await requireFiniteLogits(runner, 'model.onnx', place);
  return runs;
}

it('the probe of a device decodes all slots at the last position, then prefills up to it', async () => {
  expect(await probed('end')).toEqual([
    [99, 99, 99],
    [67, 98],
    [99, 99],
  ]);
});

it('a chunk as long as the context is probed without a token after it', async () => {
  expect(await probed('end', { ...SHAPE, contextLength: 1 })).toEqual([
    [0, 0, 0],
    [0, 0],
  ]);
});

it('the probe of the CPU stays at the start, so that it takes no memory of later positions', async () => {
  expect(await probed('start')).toEqual([
    [0, 0, 0],
    [0, 31],
    [32, 32],
  ]);
});
