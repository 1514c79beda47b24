import { once } from 'node:events';
import { threadId, Worker } from 'node:worker_threads';
import { expect, it } from 'vitest';
import { apiInTurns } from '../../../../origin/model/ort/api-in-turns.ts';
import type { OrtApi } from '../../../../origin/model/ort/ort-capi.ts';
import { createEngineLocks, singleTurns } from '../../../../origin/process/engine-locks.ts';

const HELD = 1;
const API = new URL('../../../../origin/model/ort/api-in-turns.ts', import.meta.url).href;
const LOCKS = new URL('../../../../origin/process/engine-locks.ts', import.meta.url).href;

/** Adds to a counter in two steps, many times; without a lock, additions of other threads get lost. */
const ADDING = `
  const { parentPort, threadId, workerData } = require('node:worker_threads');
  Promise.all([import(${JSON.stringify(API)}), import(${JSON.stringify(LOCKS)})]).then((modules) => {
    const [{ apiInTurns }, { singleTurns }] = modules;
    const { lock, memory, times } = workerData;
    const counter = new Int32Array(memory);
    const api = apiInTurns({ ReleaseEnv: () => {
      const before = counter[0];
      for (let i = 0; i < 50; i++);
      counter[0] = before + 1;
    } }, singleTurns(lock, threadId));
    for (let time = 0; time < times; time++) api.ReleaseEnv(0n);
  });
`;

it('threads that share a lock never call at the same time', async () => {
  const [lock, memory] = [createEngineLocks(), new SharedArrayBuffer(4)];
  const times = 100_000;
  const workers = [1, 2, 3].map(
    () => new Worker(ADDING, { eval: true, workerData: { lock, memory, times } }),
  );
  await Promise.all(workers.map((worker) => once(worker, 'exit')));
  expect(new Int32Array(memory)[0]).toBe(3 * times);
});

it('a call that throws frees the lock', () => {
  const lock = createEngineLocks();
  const cell = new Int32Array(lock);
  const failing = {
    ReleaseEnv: () => {
      expect(cell[0]).toBe(threadId + HELD);
      throw new Error('no');
    },
  } as unknown as OrtApi;
  expect(() => apiInTurns(failing, singleTurns(lock, threadId)).ReleaseEnv(0n)).toThrow('no');
  expect(cell[0]).toBe(0);
});
