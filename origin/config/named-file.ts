import { readFileSync } from 'node:fs';
import { errorMessage } from '@continuo/shared/error-details.ts';

/** Reads a file that the user has named. @throws Error one line */
export function readTextFile(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new Error(`${file} cannot be read (${errorMessage(error)})`);
  }
}

/** As `readTextFile`, for a file of JSON. */
export function readJsonFile(file: string): unknown {
  const text = readTextFile(file);
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(`${file} is not JSON (${errorMessage(error).replaceAll(/\s+/g, ' ')})`);
  }
}
