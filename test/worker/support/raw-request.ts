import { once } from 'node:events';
import { type ClientRequest, request as httpRequest, type IncomingMessage } from 'node:http';
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
export function sendRaw(
  worker: WorkerClient,
  body: Record<string, unknown>,
  headers: Readonly<Record<string, string>> = {},
) {
  const request = httpRequest(`${worker.url}/v1/completions`, {
    method: 'POST',
    agent: false,
    headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json', ...headers },
  });
  request.on('error', () => {});
  request.end(JSON.stringify({ model: 'default', prompt: 'Hi', max_tokens: 4, ...body }));
  return request;
}

/**
 * Drops the connection. A polite close says no more than that the client has sent everything, which workerd by itself
 * cannot tell from waiting; on the platform the edge in front of it can.
 */
export const reset = (request: ClientRequest): void => {
  request.socket?.resetAndDestroy();
};
