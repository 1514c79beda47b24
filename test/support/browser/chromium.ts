import { accessSync, constants } from 'node:fs';
import path from 'node:path';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'];

/** Said once in the output of a test run without a browser. */
export const NO_CHROMIUM =
  'The browser tests were skipped: install Chromium or Chrome, or set TEST_CHROMIUM to its path.';

/**
 * Returns the path of the installed Chromium or Chrome, or null. TEST_CHROMIUM names another one.
 * @throws Error if TEST_CHROMIUM names no program
 */
export function findChromium(environment: NodeJS.ProcessEnv = process.env): string | null {
  const { TEST_CHROMIUM: named, PATH = '' } = environment;
  if (named) {
    if (isProgram(named)) return named;
    throw new Error(`TEST_CHROMIUM: ${named} is no program; give the path of Chromium or Chrome.`);
  }
  const folders = PATH.split(path.delimiter);
  const files = NAMES.flatMap((name) => folders.map((folder) => path.join(folder, name)));
  return files.find(isProgram) ?? null;
}

function isProgram(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
