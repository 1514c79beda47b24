import { constants } from 'node:fs';
import { copyFile, link, lstat, mkdir, rename, rm, stat, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { errorCode } from '@continuo/shared/error-details.ts';
import { HubError, withDiskErrors } from './hub-error.ts';

/**
 * Puts a blob at its place in a snapshot, as a hard link. ONNX Runtime refuses weights behind a symbolic link
 * that leaves the model directory.
 */
export async function placeInSnapshot(blob: string, place: string): Promise<void> {
  const [content, existing] = await Promise.all([stat(blob), lstat(place).catch(() => null)]);
  if (existing !== null && existing.ino === content.ino && existing.dev === content.dev) return;
  await replace(place, (temporary) =>
    link(blob, temporary).catch((error: unknown) => {
      if (errorCode(error) === 'ENOENT') throw error;
      return copyFile(blob, temporary, constants.COPYFILE_FICLONE); // The file system has no hard links.
    }),
  );
}

/** Records the commit of a branch or tag. */
export function writeReference(refs: string, revision: string, commit: string): Promise<void> {
  return replace(path.join(refs, revision), (temporary) => writeFile(temporary, commit));
}

/** Makes `place` a symbolic link to a directory. Replaces only symbolic links. @throws HubError */
export async function linkTo(directory: string, place: string): Promise<void> {
  const existing = await lstat(place).catch(() => null);
  if (existing !== null && !existing.isSymbolicLink()) {
    throw new HubError(`${place} exists and is not a symbolic link; choose another path`);
  }
  await withDiskErrors(place, () =>
    replace(place, (temporary) => symlink(path.resolve(directory), temporary, 'dir')),
  );
}

/** Replaces a file in one step, so that readers see the old or the new one. */
async function replace(place: string, create: (temporary: string) => Promise<void>): Promise<void> {
  await mkdir(path.dirname(place), { recursive: true });
  const temporary = `${place}.${process.pid}.new`;
  await rm(temporary, { force: true });
  await create(temporary);
  await rename(temporary, place);
}
