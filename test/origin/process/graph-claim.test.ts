import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { expect, it } from 'vitest';
import { claimGraphs, createRunLock } from '../../../origin/process/thread-lock.ts';

const SOURCE = new URL('../../../origin/process/thread-lock.ts', import.meta.url).href;
const CLAIMING = `
  const { parentPort, workerData } = require('node:worker_threads');
  import(${JSON.stringify(SOURCE)}).then(({ claimGraphs }) => {
    parentPort.postMessage('asks');
    parentPort.postMessage(claimGraphs(workerData).captures);
  });
`;

it('the first engine captures; another waits until it has, and captures nothing', async () => {
  const memory = createRunLock();
  const first = claimGraphs(memory);
  expect(first.captures).toBe(true);
  const worker = new Worker(CLAIMING, { eval: true, workerData: memory });
  const told: unknown[] = [];
  worker.on('message', (message) => told.push(message));
  await once(worker, 'message');
  // The worker is about to wait; without the wait it would answer within a millisecond.
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect(told).toEqual(['asks']);
  first.end();
  await once(worker, 'exit');
  expect(told).toEqual(['asks', false]);
  expect(claimGraphs(memory).captures).toBe(false);
});

it('an engine without others captures, and so does one after it', () => {
  expect([claimGraphs(undefined).captures, claimGraphs(undefined).captures]).toEqual([true, true]);
});
