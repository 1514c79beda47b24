import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { readConfig, requireKnownVariables } from '../../../origin/config/config.ts';

const NAME = /CONTINUO_[A-Z_]*[A-Z]/g;

/** Variables that do not exist, named only as such. */
const ABSENT = new Set([
  'CONTINUO_SLOT',
  'CONTINUO_PROT',
  'CONTINUO_DRAIN_SECS',
  // Of earlier releases, which tools start.
  'CONTINUO_ORIGIN_URL',
]);

const sourceTexts = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.(ts|py|yaml)$|Dockerfile/.test(name) && !name.includes('node_modules'))
    .map((name) => readFileSync(join(folder, name), 'utf8'));

const SECRET = { CONTINUO_ORIGIN_SECRET: 'not to be told, at least 32 bytes' };

describe('configuration', () => {
  test('requires only the secret', () => {
    const config = readConfig(SECRET);
    expect(config).toMatchObject({
      host: '127.0.0.1',
      port: 9100,
      model: {
        name: 'continuo-mini',
        engine: { contextLength: null, kvMemoryBytes: null, infill: 'auto' },
        generationConfig: false,
      },
    });
    expect(config.model.engine.directory).toMatch(/origin\/models\/continuo-mini$/);
  });

  test('serves a model under the name of its directory by default', () => {
    expect(readConfig({ ...SECRET, CONTINUO_MODEL_DIR: '/models/some-name/' }).model.name).toBe('some-name');
    const named = { ...SECRET, CONTINUO_MODEL_DIR: '/models/x', CONTINUO_MODEL_NAME: 'acme/model' };
    expect(readConfig(named).model.name).toBe('acme/model');
  });

  test('computes on the CPU by default', () => {
    expect(readConfig(SECRET).model.engine.device).toEqual({
      provider: 'cpu',
      deviceId: null,
      memoryBytes: null,
    });
    const gpu = { CONTINUO_PROVIDER: 'cuda', CONTINUO_DEVICE_ID: '1', CONTINUO_DEVICE_MEMORY_MIB: '4096' };
    expect(readConfig({ ...SECRET, ...gpu }).model.engine.device).toEqual({
      provider: 'cuda',
      deviceId: 1,
      memoryBytes: 2 ** 32,
    });
    expect(() => readConfig({ ...SECRET, CONTINUO_PROVIDER: 'gpu' })).toThrow(/^CONTINUO_PROVIDER: .*webgpu/);
  });

  test('divides the time of a tenant by CONTINUO_PROMPT_SHARE', () => {
    expect(readConfig(SECRET).model.engine.promptShare).toBe(0.7);
    expect(readConfig({ ...SECRET, CONTINUO_PROMPT_SHARE: '0.8' }).model.engine.promptShare).toBe(0.8);
  });

  test('keeps prefixes on disk only if CONTINUO_PREFIX_CACHE_DIR is set', () => {
    const limitBytes = 16 * 2 ** 30;
    expect(readConfig(SECRET).model.engine.prefixDisk).toEqual({ directory: null, limitBytes });
    const set = { CONTINUO_PREFIX_CACHE_DIR: 'cache', CONTINUO_PREFIX_CACHE_DISK_MIB: '3' };
    expect(readConfig({ ...SECRET, ...set }).model.engine.prefixDisk).toEqual({
      directory: join(process.cwd(), 'cache'),
      limitBytes: 3 * 2 ** 20,
    });
  });

  test('derives the secret of prefix files from the secret of the origin', () => {
    const { prefixSecret } = readConfig(SECRET);
    expect(prefixSecret).toMatch(/^[0-9a-f]{64}$/);
    expect(readConfig(SECRET).prefixSecret).toBe(prefixSecret);
    const other = { ...SECRET, CONTINUO_ORIGIN_SECRET: 'another secret of at least 32 characters' };
    expect(readConfig(other).prefixSecret).not.toBe(prefixSecret);
  });

  test('an empty variable counts as absent', () => {
    const { engine } = readConfig({ ...SECRET, CONTINUO_SLOTS: '', CONTINUO_CONTEXT: '' }).model;
    expect(engine).toMatchObject({
      slots: 'auto',
      contextLength: null,
    });
  });

  test.each([
    ['CONTINUO_ORIGIN_SECRET', undefined, /must be set: expected at least 32 characters/],
    ['CONTINUO_ORIGIN_SECRET', 'short', /received 5 characters; expected at least 32 characters/],
    ['CONTINUO_ORIGIN_PORT', 'http', /received "http"; expected a whole number from 0 to 65535/],
    ['CONTINUO_ORIGIN_PORT', '70000', /received "70000"; expected a whole number from 0 to 65535/],
    ['CONTINUO_SLOTS', 'abc', /received "abc"; expected auto or a whole number from 1 to 1024/],
    ['CONTINUO_SLOTS', '0', /received "0"; expected auto or a whole number from 1 to 1024/],
    ['CONTINUO_SLOTS', '2.5', /received "2.5"; expected auto or a whole number from 1 to 1024/],
    ['CONTINUO_THREADS', '-1', /received "-1"; expected a whole number from 1 to 1024/],
    ['CONTINUO_PROMPT_SHARE', '0', /received "0"; expected a number from 0.01 to 0.99/],
    ['CONTINUO_PROMPT_SHARE', '1', /received "1"; expected a number from 0.01 to 0.99/],
    ['CONTINUO_PREFIX_CACHE_DISK_MIB', '0', /received "0"; expected a whole number from 1 to 100000000/],
    ['CONTINUO_GENERATION_CONFIG', 'yes', /received "yes"; expected true or false/],
    ['CONTINUO_LOG_LEVEL', 'loud', /received "loud"; expected one of fatal, error, warn, info, .*/],
    [
      'CONTINUO_MODEL_NAME',
      'x'.repeat(200),
      /received "x{80}…"; expected at least 1 characters and at most 128/,
    ],
    ['CONTINUO_INFILL', '{"layout":[]}', /received "{.*}"; expected auto, off or a template/],
  ])('%s=%s is one line that names it and keeps the secret', (name, value, message) => {
    const read = () => readConfig({ ...SECRET, [name]: value });
    expect(read).toThrow(new RegExp(`^${name}: .*${message.source}[^\\n]*$`));
    expect(read).not.toThrow(/not to be told|short$/);
  });

  test.each([
    ['CONTINUO_SLOT', /^CONTINUO_SLOT: there is no such variable; the nearest name is CONTINUO_SLOTS$/],
    ['CONTINUO_DRAIN_SECS', /nearest name is CONTINUO_DRAIN_SECONDS$/],
  ])('refuses %s, which does not exist', (name, message) => {
    expect(() => readConfig({ ...SECRET, [name]: 'true' })).toThrow(message);
  });

  test('knows every variable that a source file or test names', () => {
    const folders = ['../../../origin', '../../../worker', '../..'].map((folder) =>
      join(import.meta.dirname, folder),
    );
    const names = new Set(
      folders.flatMap((folder) => sourceTexts(folder)).flatMap((text) => text.match(NAME) ?? []),
    );
    expect(names.size).toBeGreaterThan(30);
    for (const name of names) {
      if (ABSENT.has(name)) continue;
      expect(() => requireKnownVariables({ [name]: 'x' }), name).not.toThrow();
    }
  });
});
