import { parentPort, workerData } from 'node:worker_threads';
import { type Answer, post } from './scenario.ts';

/** Entry of a thread of attackers, so that the thread that measures is not delayed. Reports each answer. */

export interface CallerOptions {
  /** Callers that each send the next request as soon as the last has its answer. */
  readonly callers: number;
  readonly url: string;
  readonly key: string;
  /** `"NEW"` in it becomes another token id in each request, so that no prefix of its prompt is cached. */
  readonly body: string;
  /**
   * How often a caller reads each stream again from its start; it then asks for resumable streams. Default:
   * 0.
   */
  readonly resumes?: number;
}

const { callers, url, key, body, resumes = 0 } = workerData as CallerOptions;

let sentBodies = 0;
const nextBody = (): string => body.replace('"NEW"', String(300 + (sentBodies++ % 3000)));

const TIMEOUT_MS = 60_000;

async function resumedStream(): Promise<Answer> {
  const sent = performance.now();
  const headers = {
    authorization: `Bearer ${key}`,
    'content-type': 'application/json',
    'x-resumable': 'true',
  };
  const stream = await fetch(url, { method: 'POST', headers, body });
  const id = /cmpl-[0-9a-f]{32}/.exec(await stream.text())?.[0];
  let { status } = stream;
  for (let read = 0; read < resumes; read++) {
    const again = await fetch(`${url}/${id}/stream`, { headers });
    await again.arrayBuffer();
    status = again.status;
  }
  return { status, ms: performance.now() - sent };
}

async function call(): Promise<never> {
  for (;;)
    parentPort?.postMessage(await (resumes > 0 ? resumedStream() : post(url, key, nextBody(), TIMEOUT_MS)));
}

for (let caller = 0; caller < callers; caller++) void call();
