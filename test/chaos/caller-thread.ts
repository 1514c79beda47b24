import { parentPort, workerData } from 'node:worker_threads';
import { type Answer, post } from './scenario.ts';

/** Entry of a thread of attackers, so that the thread that measures is not delayed. Reports each answer. */

export interface CallerOptions {
  /** Callers that each send the next request as soon as the last has its answer. */
  readonly callers: number;
  readonly url: string;
  readonly key: string;
  readonly body: string;
}

const { callers, url, key, body } = workerData as CallerOptions;

const TIMEOUT_MS = 60_000;

async function call(): Promise<never> {
  for (;;) parentPort?.postMessage((await post(url, key, body, TIMEOUT_MS)) satisfies Answer);
}

for (let caller = 0; caller < callers; caller++) void call();
