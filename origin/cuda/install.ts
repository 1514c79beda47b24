import { createWriteStream, existsSync } from 'node:fs';
import { readFile, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import { type Entry, openPromise as openZip } from 'yauzl';
import { downloadBlob } from '../hub/fetch/download.ts';
import { withFileLock } from '../hub/fetch/file-lock.ts';
import { HubError, withDiskErrors } from '../hub/fetch/hub-error.ts';
import type { ProgressDisplay } from '../terminal/progress.ts';
import type { PackageIndex } from './package-index.ts';
import type { Wheel } from './wheels.ts';

export interface InstallContext {
  readonly index: PackageIndex;
  readonly folder: string;
  readonly progress: ProgressDisplay;
  readonly sleep: (ms: number) => Promise<void>;
}

/** The other files of the folder. */
const INSTALLED = 'installed.json';
const LOCK = '.install.lock';

/**
 * Downloads the wheels that are not installed yet and puts their libraries into the folder. A download
 * resumes where an earlier one stopped.
 * @throws HubError
 */
export async function installWheels(wheels: readonly Wheel[], context: InstallContext): Promise<void> {
  const { folder, progress, sleep } = context;
  const lock = path.join(folder, LOCK);
  const onWait = () => progress.note('waiting for another installation');
  const install = async () => {
    const installed = new Set(await readInstalled(folder));
    for (const wheel of wheels) {
      const isThere = wheel.libraries.every((name) => existsSync(path.join(folder, name)));
      if (isThere && installed.has(wheel.file)) continue;
      await installWheel(wheel, context);
      installed.add(wheel.file);
      await writeFile(path.join(folder, INSTALLED), JSON.stringify([...installed]));
    }
  };
  await withFileLock(lock, { onWait, sleep }, () => withDiskErrors(folder, install));
}

async function installWheel(wheel: Wheel, { index, folder, progress }: InstallContext): Promise<void> {
  const { file, libraries } = wheel;
  const blob = path.join(folder, file);
  if (!existsSync(blob)) {
    const source = await index.source(wheel);
    const display = progress.start(wheel.project, wheel.size);
    try {
      await downloadBlob({ source, identity: wheel, blob, onBytes: (bytes) => display.update(bytes) });
    } finally {
      display.stop();
    }
  }
  await extractLibraries(blob, libraries, folder);
  await rm(blob);
}

/**
 * Extracts files of a wheel, which is a ZIP archive, by their names without folders. A file gets its name
 * when it is complete.
 * @throws HubError if the archive is damaged or lacks one of them
 */
async function extractLibraries(wheel: string, names: readonly string[], folder: string): Promise<void> {
  const file = path.basename(wheel);
  const damaged = (error: Error): never => {
    // Errors of the file system have a code.
    if (error instanceof HubError || 'code' in error) throw error;
    throw new HubError(`${file} is not a valid ZIP archive: ${error.message}`);
  };
  const archive = await openZip(wheel, { autoClose: false }).catch(damaged);
  const extract = async () => {
    const entries = new Map<string, Entry>();
    for await (const entry of archive.eachEntry()) entries.set(path.posix.basename(entry.fileName), entry);
    for (const name of names) {
      const entry = entries.get(name);
      if (entry === undefined) throw new HubError(`${file} does not contain ${name}`);
      const target = path.join(folder, name);
      await pipeline(await archive.openReadStreamPromise(entry), createWriteStream(`${target}.incomplete`));
      await rename(`${target}.incomplete`, target);
    }
  };
  await extract()
    .catch(damaged)
    .finally(() => archive.close());
}

async function readInstalled(folder: string): Promise<string[]> {
  try {
    return JSON.parse(await readFile(path.join(folder, INSTALLED), 'utf8')) as string[];
  } catch {
    return [];
  }
}
