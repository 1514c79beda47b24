import { createHash, randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { newApiKey } from '@continuo/shared/api-key.ts';
import { errorCode } from '@continuo/shared/error-details.ts';

/** The secrets of an installation on one host: files that its processes share. */

export interface HostSecrets {
  readonly ORIGIN_SECRET: string;
  readonly KEY_ID_SECRET: string;
  readonly ADMIN_KEY_SHA256: string;
}

/** Returns the secret in a file that only its owner can read; makes it if there is none. */
function secretIn(file: string, make: () => string): string {
  try {
    writeFileSync(file, make(), { mode: 0o600, flag: 'wx' });
  } catch (error) {
    if (errorCode(error) !== 'EEXIST') throw error;
  }
  return readFileSync(file, 'utf8').trim();
}

const randomHex = (): string => randomBytes(32).toString('hex');

/** Reads the secrets in `directory`, where the first start makes them: the files origin-secret, key-id-secret, admin-key. */
export function hostSecrets(directory: string): HostSecrets {
  mkdirSync(directory, { recursive: true });
  const secret = (name: string, make: () => string) => secretIn(path.join(directory, name), make);
  const adminKey = secret('admin-key', () => newApiKey(randomBytes).secret);
  return {
    ORIGIN_SECRET: secret('origin-secret', randomHex),
    KEY_ID_SECRET: secret('key-id-secret', randomHex),
    ADMIN_KEY_SHA256: createHash('sha256').update(adminKey).digest('hex'),
  };
}
