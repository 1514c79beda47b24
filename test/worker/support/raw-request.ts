import { once } from 'node:events';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { KEY, type WorkerClient } from './worker.ts';

interface OpenStream {
  readonly response: IncomingMessage;
  /** Closes the client's connection. */
  leave(): void;
}

/** A streaming request on a connection of its own; undici would hide when it really closes. */
export async function openStream(
  worker: WorkerClient,
  body: Record<string, unknown> = {},
): Promise<OpenStream> {
  const request = sendRaw(worker, { stream: true, ...body });
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  return { response, leave: () => request.destroy() };
}

/** A request on a connection of its own, whose answer is left to the caller. */
export function sendRaw(worker: WorkerClient, body: Record<string, unknown>) {
  const request = httpRequest(`${worker.url}/v1/completions`, {
    method: 'POST',
    agent: false,
    headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
  });
  request.on('error', () => {});
  request.end(JSON.stringify({ model: 'default', prompt: 'Hi', max_tokens: 4, ...body }));
  return request;
}
