import { errorMessage, oneLine } from '@continuo/shared/error-details.ts';
import * as z from 'zod';

/** A fault of the model or its directory; the message is one line for the log. */
export class ModelError extends Error {
  override readonly name = 'ModelError';
}

/** The text files of a model: of a directory (`textsOf`), or of a browser's memory. */
export interface ModelTexts {
  /** For messages. */
  readonly directory: string;
  /** Returns undefined if there is no such file. @throws Error if it cannot be read */
  readonly read: (file: string) => string | undefined;
}

/** Runs `read` and puts the file's name before the message of its errors. */
export function inFile<T>(file: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw new ModelError(`${file} ${oneLine(error)}`, { cause: error });
  }
}

export const count = z.int().positive();

export const tokenId = z.int().nonnegative();

/** One id or several, as a list. */
export const tokenIds = z.union([tokenId.transform((id) => [id]), z.array(tokenId)]);

/**
 * Reads and checks a JSON file of a model. Returns undefined if it does not exist.
 * @throws ModelError that names the file and the field
 */
export function readModelJson<T>(texts: ModelTexts, file: string, schema: z.ZodType<T>): T | undefined {
  let text: string | undefined;
  try {
    text = texts.read(file);
  } catch (error) {
    throw new ModelError(`${file} cannot be read: ${errorMessage(error)}`);
  }
  if (text === undefined) return undefined;
  let value: unknown;
  try {
    value = JSON.parse(withNumbers(text));
  } catch {
    throw new ModelError(`${file} is not valid JSON`);
  }
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const faults = parsed.error.issues.map(({ path, message }) => `${path.join('.') || 'file'}: ${message}`);
  throw new ModelError(`${file}: ${faults.join('; ')}`);
}

/** Python writes Infinity, which JSON does not have; as a number beyond all others, JSON.parse gives it. */
const withNumbers = (text: string): string =>
  text.replace(/"(?:[^"\\]|\\.)*"|\bInfinity\b/g, (match) => (match === 'Infinity' ? '1e999' : match));
