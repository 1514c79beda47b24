import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import * as z from 'zod';
import { newApiKey } from '../../shared/api-key.ts';

const schema = z.object({ apiKey: z.string(), originSecret: z.string() });

/** What one checkout keeps between starts, so that a key pasted into a client goes on working. */
export type DevelopmentState = z.infer<typeof schema>;

/** Reads the state under `directory`, or makes it; the file is readable by its owner alone. */
export function developmentState(directory: string): DevelopmentState {
  const file = path.join(directory, 'development.json');
  if (existsSync(file)) {
    const parsed = schema.safeParse(JSON.parse(readFileSync(file, 'utf8')));
    if (parsed.success) return parsed.data;
  }
  const state = { apiKey: newApiKey(randomBytes).secret, originSecret: randomBytes(32).toString('hex') };
  mkdirSync(directory, { recursive: true });
  writeFileSync(file, `${JSON.stringify(state, null, 2)}\n`, { mode: 0o600 });
  return state;
}
