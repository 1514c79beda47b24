import { readFileSync } from 'node:fs';
import { errorMessage } from '@continuo/shared/error-details.ts';

/** Decodes what the user has given. @throws Error one line, if a character would be replaced */
export function decodeText(bytes: Uint8Array, source: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new Error(`${source} is not UTF-8`);
  }
}

const readBytes = (file: string): Uint8Array => {
  try {
    return readFileSync(file);
  } catch (error) {
    throw new Error(`${file} cannot be read (${errorMessage(error)})`);
  }
};

/** Reads a file that the user has named. @throws Error one line */
export const readTextFile = (file: string): string => decodeText(readBytes(file), file);

/** As `readTextFile`, for a file of JSON. */
export function readJsonFile(file: string, parse: (text: string) => unknown = JSON.parse): unknown {
  const text = readTextFile(file);
  try {
    return parse(text);
  } catch (error) {
    throw new Error(`${file} is not JSON (${errorMessage(error).replaceAll(/\s+/g, ' ')})`);
  }
}
