import { constants } from 'node:fs';
import { copyFile, link, lstat, mkdir, rename, rm, stat, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { onDisk } from './disk.ts';
import { HubError } from './hub-error.ts';

/**
 * Puts a blob's content at its place in a snapshot. As a second name of the same file, not as a symbolic link: ONNX
 * Runtime refuses weights that a link takes out of the model's directory.
 * @throws HubError
 */
export async function placeInSnapshot(blob: string, place: string): Promise<void> {
  await onDisk(place, async () => {
    if (await isSameFile(blob, place)) return;
    await mkdir(path.dirname(place), { recursive: true });
    const beside = `${place}.${process.pid}.new`;
    await rm(beside, { force: true });
    await link(blob, beside).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') throw error;
      return copyFile(blob, beside, constants.COPYFILE_FICLONE); // a file system without hard links
    });
    await rename(beside, place);
  });
}

/** False for a symbolic link to the blob, as other tools make it. */
async function isSameFile(blob: string, place: string): Promise<boolean> {
  const [content, found] = await Promise.all([stat(blob), lstat(place).catch(() => null)]);
  return found !== null && found.ino === content.ino && found.dev === content.dev;
}

/** Notes the commit a branch or tag stood at; readers see the old or the new one. @throws HubError */
export async function writeReference(refs: string, revision: string, commit: string): Promise<void> {
  const file = path.join(refs, revision);
  await onDisk(file, async () => {
    await mkdir(path.dirname(file), { recursive: true });
    const beside = `${file}.${process.pid}.new`;
    await writeFile(beside, commit);
    await rename(beside, file);
  });
}

/**
 * Makes `place` a link to a directory; a link that was there is replaced in one step, anything else stays.
 * @throws HubError
 */
export async function linkTo(directory: string, place: string): Promise<void> {
  const found = await lstat(place).catch(() => null);
  if (found !== null && !found.isSymbolicLink()) throw new HubError(`${place} exists and is no link`);
  await onDisk(place, async () => {
    const beside = `${place}.${process.pid}.new`;
    await rm(beside, { force: true });
    await symlink(path.resolve(directory), beside, 'dir');
    await rename(beside, place);
  });
}
