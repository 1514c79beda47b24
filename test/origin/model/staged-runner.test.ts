import { expect, it } from 'vitest';
import type { DecodeBatch, ModelRunner } from '../../../origin/model/model-runner.ts';
import { StagedRunner } from '../../../origin/model/runner/device/staged-runner.ts';

const shape = { vocabularySize: 2, contextLength: 64, slots: 4, prefillChunk: 8, minRows: 1 };
type Parts = ConstructorParameters<typeof StagedRunner>[0];

/** Parts that compute nothing; the positions that each decode was given. */
function parts() {
  const decoded: number[][] = [];
  const decode = ({ rows, positions }: DecodeBatch) => {
    decoded.push([...positions.subarray(0, rows)]);
    return new Float32Array(rows * shape.vocabularySize);
  };
  const prefill: ModelRunner['prefill'] = async () => new Float32Array();
  const cache = { copy: () => undefined, copyTo: () => undefined };
  const made = { decoder: { shape, decode }, prefiller: { shape, prefill }, slots: cache, staging: cache };
  return { decoded, parts: { ...made, release: () => undefined } as unknown as Parts };
}

it('does not change rows below the decoding ones, however long it decodes', async () => {
  const fake = parts();
  const runner = new StagedRunner(fake.parts);
  const { signal } = new AbortController();
  await runner.prefill({ slot: 0, start: 0, tokens: new Int32Array(5), logitsAt: new Int32Array() }, signal);
  for (let step = 0; step < 40; step++) {
    const positions = Int32Array.of(step);
    expect(runner.decode({ firstSlot: 2, rows: 1, tokens: Int32Array.of(1), positions })).toHaveLength(2);
  }
  expect(fake.decoded).toEqual(Array.from({ length: 40 }, (_, step) => [5, 0, step]));
});
