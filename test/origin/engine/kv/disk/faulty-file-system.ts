import fs from 'node:fs/promises';
import type { FileSystem } from '../../../../../origin/engine/kv/disk/chunk-index.ts';

/** The real file system, whose calls fail with a code when `fails` says so. */
export function faultyFileSystem(code: string, fails: (call: keyof FileSystem) => boolean): FileSystem {
  const call = (name: keyof FileSystem) =>
    (async (...args: never[]) => {
      if (fails(name)) throw Object.assign(new Error('injected'), { code });
      return await (fs[name] as (...args: never[]) => Promise<unknown>)(...args);
    }) as never;
  return {
    open: call('open'),
    opendir: call('opendir'),
    rename: call('rename'),
    stat: call('stat'),
    unlink: call('unlink'),
    utimes: call('utimes'),
  };
}
