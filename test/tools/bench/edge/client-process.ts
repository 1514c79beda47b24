import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { Load } from './load.ts';
import type { Seen, Way } from './path.ts';

/** The clients of one path to the origin, in a separate process. */
export interface Clients {
  /** Runs one load at a time. @throws Error if a request fails */
  run(load: Load): Promise<readonly Seen[]>;
  close(): void;
}

export async function startClients(way: Way): Promise<Clients> {
  const child = fork(fileURLToPath(new URL('client.ts', import.meta.url)), [JSON.stringify(way)]);
  const died = once(child, 'exit').then(() => {
    throw new Error('The clients ended early: a request failed.');
  });
  died.catch(() => {});
  const message = async () => (await Promise.race([once(child, 'message'), died]))[0] as unknown;
  await message();
  return {
    async run(load) {
      const answer = message();
      child.send(load);
      return (await answer) as readonly Seen[];
    },
    close: () => child.disconnect(),
  };
}
