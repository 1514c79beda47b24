import { hash, randomBytes } from 'node:crypto';
import { existsSync, linkSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { createDirectory } from '@continuo/origin/config/writable-directory.ts';
import { newApiKey } from '@continuo/shared/api-key.ts';
import { errorCode } from '@continuo/shared/error-details.ts';

/** The secrets of an installation on one host: files that its processes share. */

interface HostSecrets {
  readonly ORIGIN_SECRET: string;
  readonly KEY_ID_SECRET: string;
  readonly ADMIN_KEY_SHA256: string;
  /** Signs alerts. */
  readonly WEBHOOK_SECRET: string;
}

/** Returns the secret in a file that only its owner can read; makes it if there is none. */
function secretIn(file: string, make: () => string): string {
  if (!existsSync(file)) {
    // Another process must not read half of it, and a full disk must not leave an empty one.
    const whole = `${file}.${process.pid}`;
    try {
      writeFileSync(whole, make(), { mode: 0o600 });
      linkSync(whole, file);
    } catch (error) {
      if (errorCode(error) !== 'EEXIST') throw error;
    } finally {
      rmSync(whole, { force: true });
    }
  }
  const secret = readFileSync(file, 'utf8').trim();
  if (secret === '') throw new Error(`${file} is empty; restore it, or remove it to get a new secret`);
  return secret;
}

const randomHex = (): string => randomBytes(32).toString('hex');

type Secret = keyof HostSecrets;

export const ADMIN_KEY_FILE = 'admin-key';
/** Files of the other secrets. */
const RANDOM_SECRETS: Readonly<Record<Exclude<Secret, 'ADMIN_KEY_SHA256'>, string>> = {
  ORIGIN_SECRET: 'origin-secret',
  KEY_ID_SECRET: 'key-id-secret',
  WEBHOOK_SECRET: 'webhook-secret',
};

/** Reads one secret in `directory`; makes its file if there is none. */
export function hostSecret(directory: string, name: Secret): string {
  createDirectory(directory);
  const file = (base: string) => path.join(directory, base);
  if (name === 'ADMIN_KEY_SHA256')
    return hash(
      'sha256',
      secretIn(file(ADMIN_KEY_FILE), () => newApiKey(randomBytes).secret),
    );
  return secretIn(file(RANDOM_SECRETS[name]), randomHex);
}

/** Reads the secrets in `directory`, where a start makes those that are missing. */
export const hostSecrets = (directory: string): HostSecrets => ({
  ORIGIN_SECRET: hostSecret(directory, 'ORIGIN_SECRET'),
  KEY_ID_SECRET: hostSecret(directory, 'KEY_ID_SECRET'),
  ADMIN_KEY_SHA256: hostSecret(directory, 'ADMIN_KEY_SHA256'),
  WEBHOOK_SECRET: hostSecret(directory, 'WEBHOOK_SECRET'),
});
