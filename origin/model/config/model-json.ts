import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { errorCode, errorMessage } from '@continuo/shared/error-details.ts';
import * as z from 'zod';

/** A fault of the model or its directory; the message is one line for the log. */
export class ModelError extends Error {
  override readonly name = 'ModelError';
}

export const count = z.int().positive();

export const tokenId = z.int().nonnegative();

/** One id or several, as a list. */
export const tokenIds = z.union([tokenId.transform((id) => [id]), z.array(tokenId)]);

/**
 * Reads and checks a JSON file of a model directory. Returns undefined if it does not exist.
 * @throws ModelError that names the file and the field
 */
export function readModelJson<T>(directory: string, file: string, schema: z.ZodType<T>): T | undefined {
  let text: string;
  try {
    text = readFileSync(join(directory, file), 'utf8');
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return undefined;
    throw new ModelError(`${file} cannot be read: ${errorMessage(error)}`);
  }
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
  text.replace(/"(?:[^"\\]|\\.)*"|\bInfinity\b/g, (found) => (found === 'Infinity' ? '1e999' : found));
