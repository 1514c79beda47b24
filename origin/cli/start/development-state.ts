import { randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { newApiKey } from '@continuo/shared/api-key.ts';
import * as z from 'zod';

const schema = z.object({ apiKey: z.string(), originSecret: z.string() });

/** Secrets that a checkout keeps between starts, so that a key pasted into a client keeps working. */
export type DevelopmentState = z.infer<typeof schema>;

const fileIn = (directory: string): string => path.join(directory, 'development.json');

/** Returns the state under `directory`; null if the file is missing or incomplete. */
export function readState(directory: string): DevelopmentState | null {
  try {
    return schema.parse(JSON.parse(readFileSync(fileIn(directory), 'utf8')));
  } catch {
    return null;
  }
}

/** Reads the state under `directory`, or creates it in a file that only its owner can read. */
export function developmentState(directory: string): DevelopmentState {
  const stored = readState(directory);
  if (stored !== null) return stored;
  const state = { apiKey: newApiKey(randomBytes).secret, originSecret: randomBytes(32).toString('hex') };
  writeFileSync(fileIn(directory), `${JSON.stringify(state, null, 2)}\n`, { mode: 0o600 });
  return state;
}
