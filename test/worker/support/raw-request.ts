import { once } from 'node:events';
import { type ClientRequest, request as httpRequest, type IncomingMessage } from 'node:http';
import { KEY, type WorkerClient } from './worker.ts';

interface OpenStream {
  readonly response: IncomingMessage;
  /** Closes the client's connection. */
  leave(): void;
}

/** Sends a streaming request on its own connection, because undici hides when a connection closes. */
export async function openStream(
  worker: WorkerClient,
  body: Record<string, unknown> = {},
): Promise<OpenStream> {
  const request = sendRaw(worker, { stream: true, ...body });
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  return { response, leave: () => request.destroy() };
}

/** Sends a request on its own connection, without reading the answer. */
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

/** Resets the connection. workerd notices this without writing, unlike an ordinary close. */
export const reset = (request: ClientRequest): void => {
  request.socket?.resetAndDestroy();
};

/** Closes the connection in the ordinary way. `response` = the answer: unread bytes would cause a reset. */
export const close = (request: ClientRequest, response?: IncomingMessage): void => {
  response?.resume();
  request.destroy();
};
