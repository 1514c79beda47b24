import { randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import * as z from 'zod';
import { newApiKey } from '../../shared/api-key.ts';
import { messageOf } from '../../shared/message-of.ts';

const schema = z.object({ apiKey: z.string(), originSecret: z.string() });

/** What one checkout keeps between starts, so that a key pasted into a client goes on working. */
export type DevelopmentState = z.infer<typeof schema>;

/** What was kept; null when there is nothing, or half a file, as a full disk leaves it. */
function kept(file: string): DevelopmentState | null {
  try {
    return schema.parse(JSON.parse(readFileSync(file, 'utf8')));
  } catch {
    return null;
  }
}

/**
 * Reads the state under `directory`, or makes it; the file is readable by its owner alone.
 * @throws Error one line naming the variable, when nothing can be kept there
 */
export function developmentState(directory: string): DevelopmentState {
  const file = path.join(directory, 'development.json');
  const former = kept(file);
  if (former !== null) return former;
  const state = { apiKey: newApiKey(randomBytes).secret, originSecret: randomBytes(32).toString('hex') };
  try {
    mkdirSync(directory, { recursive: true });
    writeFileSync(file, `${JSON.stringify(state, null, 2)}\n`, { mode: 0o600 });
  } catch (error) {
    throw new Error(`CONTINUO_STATE_DIR: nothing can be kept there (${messageOf(error)}).`);
  }
  return state;
}
