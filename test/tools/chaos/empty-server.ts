import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { parentPort } from 'node:worker_threads';

/**
 * Entry of a thread with a server that reads every body and refuses it: what no refusal can do cheaper.
 * Reports its port.
 */

const server = createServer((request, response) => {
  request.resume().on('end', () => response.writeHead(401).end());
});
await once(server.listen(0, '127.0.0.1'), 'listening');
parentPort?.postMessage((server.address() as AddressInfo).port);
