import { setImmediate } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, it } from 'vitest';
import { arrayTensor } from '../../../../origin/model/ort/bound-tensors.ts';
import { OrtBinding } from '../../../../origin/model/ort/ort-binding.ts';
import type { OrtApi } from '../../../../origin/model/ort/ort-capi.ts';

setFlagsFromString('--expose-gc');
const collectGarbage: () => void = runInNewContext('gc');

/** Returns which memory is left after the garbage collector has run. */
async function left(memories: readonly WeakRef<Float32Array>[]): Promise<boolean[]> {
  // A WeakRef keeps its target until the job that has read it ends.
  await setImmediate();
  collectGarbage();
  return memories.map((memory) => memory.deref() !== undefined);
}

it('a binding keeps the memory of its tensors alive until another is bound or it is disposed', async () => {
  const api = new Proxy({}, { get: () => () => 1n }) as OrtApi;
  const binding = new OrtBinding(api, 1n, 1n);
  const bound = (kind: 'input' | 'output' | 'inPlace') => {
    const memory = new Float32Array(new ArrayBuffer(64));
    const tensor = arrayTensor(api, memory, [16]);
    if (kind === 'inPlace') binding.inPlace('past', ['present'], tensor);
    else binding[kind](kind, tensor);
    return new WeakRef(memory);
  };
  const memories = [bound('input'), bound('output'), bound('inPlace')];
  expect(await left(memories)).toEqual([true, true, true]);
  const next = bound('input');
  expect(await left([...memories, next])).toEqual([false, true, true, true]);
  binding.dispose();
  expect(await left([...memories, next])).toEqual([false, false, false, false]);
});
