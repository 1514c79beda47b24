import { createServer } from 'node:net';

/** Why nothing can listen on the port of the address, as the system's code; null when something can. */
export function portFault(port: number, host: string): Promise<string | null> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once('error', ({ code, message }: NodeJS.ErrnoException) => resolve(code ?? message));
    probe.listen(port, host, () => probe.close(() => resolve(null)));
  });
}
