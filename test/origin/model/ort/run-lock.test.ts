import { once } from 'node:events';
import { threadId, Worker } from 'node:worker_threads';
import { expect, it } from 'vitest';
import type { OrtApi } from '../../../../origin/model/ort/ort-capi.ts';
import { lockedApi } from '../../../../origin/model/ort/run-lock.ts';

const HELD = 1;
const SOURCE = new URL('../../../../origin/model/ort/run-lock.ts', import.meta.url).href;

/** Adds to a counter in two steps, many times; without a lock, additions of other threads get lost. */
const ADDING = `
  const { parentPort, threadId, workerData } = require('node:worker_threads');
  import(${JSON.stringify(SOURCE)}).then(({ lockedApi }) => {
    const { lock, memory, times } = workerData;
    const counter = new Int32Array(memory);
    const api = lockedApi({ ReleaseEnv: () => {
      const before = counter[0];
      for (let i = 0; i < 50; i++);
      counter[0] = before + 1;
    } }, lock, threadId);
    for (let time = 0; time < times; time++) api.ReleaseEnv(0n);
  });
`;

it('threads that share a lock never call at the same time', async () => {
  const [lock, memory] = [new SharedArrayBuffer(4), new SharedArrayBuffer(4)];
  const times = 100_000;
  const workers = [1, 2, 3].map(
    () => new Worker(ADDING, { eval: true, workerData: { lock, memory, times } }),
  );
  await Promise.all(workers.map((worker) => once(worker, 'exit')));
  expect(new Int32Array(memory)[0]).toBe(3 * times);
});

it('a call that throws frees the lock', () => {
  const lock = new SharedArrayBuffer(4);
  const cell = new Int32Array(lock);
  const failing = {
    ReleaseEnv: () => {
      expect(cell[0]).toBe(threadId + HELD);
      throw new Error('no');
    },
  } as unknown as OrtApi;
  expect(() => lockedApi(failing, lock, threadId).ReleaseEnv(0n)).toThrow('no');
  expect(cell[0]).toBe(0);
});
