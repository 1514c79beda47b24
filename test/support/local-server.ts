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
  readonly port: number;
  /** Breaks all connections. */
  stop(): Promise<void>;
}

/** Serves requests at a free port of this machine. */
export async function serve(listener: RequestListener, host = '127.0.0.1'): Promise<LocalServer> {
  const server = createServer(KEPT_CONNECTIONS, listener);
  await once(server.listen(0, host), 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://${host}:${port}`,
    port,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
