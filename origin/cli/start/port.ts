import { createServer } from 'node:net';

/** Returns the system's error code if nothing can listen on the port; null if it is free. */
export function portFault(port: number, host: string): Promise<string | null> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once('error', ({ code, message }: NodeJS.ErrnoException) => resolve(code ?? message));
    probe.listen(port, host, () => probe.close(() => resolve(null)));
  });
}
