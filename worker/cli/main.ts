import { readFileSync } from 'node:fs';
import path from 'node:path';
import { CommanderError } from 'commander';
import * as z from 'zod';
import { createAdminProgram } from './admin-program.ts';
import { CommandError } from './api.ts';
import { isLocal, localAddress } from './local-server.ts';

/** The state directory of `npm start` with the same environment. */
const STATE = path.resolve(import.meta.dirname, '../..', process.env.CONTINUO_STATE_DIR || '.continuo');

/** The key that `npm start` created for this checkout. Only its own server accepts it. */
function developmentKey(url: URL): string | null {
  if (!isLocal(url, process.env)) return null;
  try {
    const text = readFileSync(path.join(STATE, 'development.json'), 'utf8');
    return z.object({ apiKey: z.string() }).parse(JSON.parse(text)).apiKey;
  } catch {
    return null;
  }
}

function keyFor(url: URL): string {
  const key = process.env.CONTINUO_ADMIN_KEY || developmentKey(url);
  if (key !== null) return key;
  const how = isLocal(url, process.env) ? 'Run npm start, which creates one, or set' : 'Set';
  throw new CommandError(`There is no admin key. ${how} CONTINUO_ADMIN_KEY.`);
}

const program = createAdminProgram({
  url: process.env.CONTINUO_URL || localAddress(process.env),
  keyFor,
  fetch,
  print: (text) => console.log(text),
  printError: (text) => console.error(text),
});

try {
  await program.parseAsync();
} catch (thrown) {
  if (thrown instanceof CommandError) console.error(thrown.message);
  else if (!(thrown instanceof CommanderError)) throw thrown;
  process.exitCode = thrown instanceof CommanderError ? thrown.exitCode : 1;
}
