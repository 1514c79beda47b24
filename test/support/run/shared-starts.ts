/** Starts of what the files of a worker process share. They do not count for the first file. */

declare module 'vitest' {
  interface TaskMeta {
    /** Milliseconds of this file in which something shared was started. */
    startMs?: number;
  }
}

let startMs = 0;

/** Starts what further files will use. */
export async function starting<T>(start: () => Promise<T>): Promise<T> {
  const began = performance.now();
  try {
    return await start();
  } finally {
    startMs += performance.now() - began;
  }
}

/** Returns the time of the starts since the last call, in milliseconds. */
export function takeStartMs(): number {
  const taken = startMs;
  startMs = 0;
  return taken;
}
