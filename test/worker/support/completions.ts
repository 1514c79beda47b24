import { expect } from 'vitest';
import { completionResponse } from '../../../shared/completion-response.ts';
import { type Chunk, type Completion, chunksOf } from './sse.ts';
import type { WorkerClient } from './worker.ts';

type Fields = Readonly<Record<string, unknown>>;
type Headers = Readonly<Record<string, string>>;

/** Returns the plain answer to a request that must succeed. */
export async function complete(
  worker: WorkerClient,
  body: Fields,
  headers: Headers = {},
): Promise<Completion> {
  const response = await worker.post({ model: 'default', prompt: 'Hi', ...body }, { headers });
  const text = await response.text();
  expect(response.status, text).toBe(200);
  return completionResponse.parse(JSON.parse(text));
}

/** Returns the chunks of a stream that must complete. */
export async function stream(worker: WorkerClient, body: Fields, headers: Headers = {}): Promise<Chunk[]> {
  const response = await worker.post({ model: 'default', prompt: 'Hi', stream: true, ...body }, { headers });
  expect(response.status).toBe(200);
  expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
  expect(response.headers.get('cache-control')).toBe('no-store');
  return chunksOf(await response.text());
}
