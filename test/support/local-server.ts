import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';

/**
 * Keeps idle connections, as workerd does. A server that closes them after Node's 5 s may do so when its
 * process goes on after a pause, although requests have arrived meanwhile.
 */
export const KEPT_CONNECTIONS = { keepAliveTimeout: 600_000 };

export interface LocalServer {
  readonly url: string;
  /** Breaks all connections. */
  stop(): Promise<void>;
}

/** Serves requests at a free port of this machine. */
export async function serve(listener: RequestListener): Promise<LocalServer> {
  const server = createServer(KEPT_CONNECTIONS, listener);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
