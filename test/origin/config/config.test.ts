import { describe, expect, test } from 'vitest';
import { readConfig } from '../../../origin/config/config.ts';

const SECRET = { CONTINUO_ORIGIN_SECRET: 'not to be told' };

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

  test('speculates only if CONTINUO_SPECULATION is set', () => {
    expect(readConfig(SECRET).model.engine.speculation).toEqual({ maxTokens: 0, maxRows: 1 });
    const all = { CONTINUO_SPECULATION: '8', CONTINUO_SPECULATION_ROWS: '2' };
    expect(readConfig({ ...SECRET, ...all }).model.engine.speculation).toEqual({ maxTokens: 8, maxRows: 2 });
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

  test('an empty variable counts as absent', () => {
    const { engine } = readConfig({ ...SECRET, CONTINUO_SLOTS: '', CONTINUO_CONTEXT: '' }).model;
    expect(engine).toMatchObject({
      slots: 8,
      contextLength: null,
    });
  });

  test.each([
    ['CONTINUO_ORIGIN_SECRET', undefined, /must be set/],
    ['CONTINUO_ORIGIN_SECRET', 'short', /8/],
    ['CONTINUO_ORIGIN_PORT', 'http', /number/],
    ['CONTINUO_ORIGIN_PORT', '70000', /65535/],
    ['CONTINUO_SLOTS', '0', />=1/],
    ['CONTINUO_SLOTS', '2.5', /int/],
    ['CONTINUO_THREADS', '-1', />=1/],
    ['CONTINUO_SPECULATION', '65', /64/],
    ['CONTINUO_GENERATION_CONFIG', 'yes', /"true"\|"false"/],
    ['CONTINUO_LOG_LEVEL', 'loud', /info/],
    ['CONTINUO_INFILL', '{"layout":[]}', /template/],
  ])('%s=%s is one line that names it and keeps the secret', (name, value, message) => {
    const read = () => readConfig({ ...SECRET, [name]: value });
    expect(read).toThrow(new RegExp(`^${name}: .*${message.source}[^\\n]*$`));
    expect(read).not.toThrow(/not to be told|short$/);
  });
});
