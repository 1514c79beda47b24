import { expect, test } from 'vitest';
import { readStartSettings } from '../../../../origin/cli/start/settings.ts';
import { readConfig } from '../../../../origin/config/config.ts';
import type { Environment } from '../../../../origin/config/environment.ts';

test('an empty variable counts as absent', () => {
  const empty = { CONTINUO_HOST: '', CONTINUO_PORT: '', CONTINUO_ORIGIN_PORT: '', CONTINUO_STATE_DIR: '' };
  expect(readStartSettings(empty)).toEqual(readStartSettings({}));
});

test('the URL of an IPv6 address has brackets', () => {
  expect(readStartSettings({ CONTINUO_HOST: '::1', CONTINUO_PORT: '8000' }).url).toBe('http://[::1]:8000');
  expect(readStartSettings({ CONTINUO_PORT: '8000' }).url).toBe('http://127.0.0.1:8000');
});

test('refuses a port that is none, and one port for Worker and origin', () => {
  expect(() => readStartSettings({ CONTINUO_PORT: 'eighty' })).toThrow(/^CONTINUO_PORT: [^\n]+$/);
  expect(() => readStartSettings({ CONTINUO_PORT: '8000', CONTINUO_ORIGIN_PORT: '8000' })).toThrow(
    'CONTINUO_ORIGIN_PORT: 8000 is already CONTINUO_PORT; set another one.',
  );
});

test('passes the Worker its variables and the secrets of upstreams, and nothing else', () => {
  const upstreams = [
    { kind: 'openai', apiKey: 'THEIR_KEY' },
    { kind: 'origin', secret: 'FAR_SECRET' },
  ];
  const variables = {
    CORS_ORIGINS: '*',
    BILLING_URL: 'https://billing.example.com/',
    REQUEST_DAYS: '7',
    UPSTREAMS: JSON.stringify(upstreams),
    THEIR_KEY: 'a',
    FAR_SECRET: 'b',
    UPSTREAM_VLLM_KEY: 'd',
  };
  const environment = {
    ...variables,
    MODEL_ALIASES: '',
    HOME: '/root',
    OTHER_KEY: 'c',
    ORIGIN_URL: 'http://x',
  };
  expect(readStartSettings(environment).workerVariables).toEqual(variables);
  expect(() => readStartSettings({ UPSTREAMS: '[' })).toThrow(/^UPSTREAMS: expected JSON/);
  expect(() => readStartSettings({ REQUEST_DAYS: 'week' })).toThrow(/^The variable REQUEST_DAYS is invalid/);
});

test('each card has an origin of its own, with ports that follow one another', () => {
  const environment = {
    CONTINUO_DEVICES: '0,2,2',
    CONTINUO_METRICS_PORT: '9200',
    CONTINUO_PREFIX_CACHE_MIB: '64',
  };
  const settings = readStartSettings({ ...environment, CONTINUO_ORIGIN_PORT: '9300' });
  const shared = { CONTINUO_DEVICES: undefined, CONTINUO_PROVIDER: 'cuda', CONTINUO_PREFIX_CACHE_MIB: '64' };
  expect(settings.metricsPort).toBe(9200);
  expect(settings.origins).toEqual([
    {
      name: 'origin-0',
      port: 9300,
      url: 'http://127.0.0.1:9300',
      metricsPort: 9201,
      variables: { ...shared, CONTINUO_DEVICE_ID: '0', CONTINUO_METRICS_PORT: '9201' },
    },
    {
      name: 'origin-2',
      port: 9301,
      url: 'http://127.0.0.1:9301',
      metricsPort: 9202,
      variables: { ...shared, CONTINUO_DEVICE_ID: '2', CONTINUO_METRICS_PORT: '9202' },
    },
  ]);
});

test('without a limit, origins of several cards share the memory that one would take for prefixes', () => {
  const sizes = (devices: string) =>
    readStartSettings({ CONTINUO_DEVICES: devices }).origins.map(({ variables }) =>
      Number(variables.CONTINUO_PREFIX_CACHE_MIB),
    );
  const [one] = sizes('0');
  const many = sizes(Array.from({ length: 64 }, (_, device) => device).join());
  expect(many).toHaveLength(64);
  expect(many.reduce((sum, size) => sum + size)).toBeLessThanOrEqual(process.availableMemory() / 2 ** 20 / 2);
  expect(one).toBeGreaterThan(many[0]!);
});

test('all cards are those that the driver finds', () => {
  const { origins } = readStartSettings({ CONTINUO_DEVICES: 'all' }, () => 3);
  expect(origins.map(({ name }) => name)).toEqual(['origin-0', 'origin-1', 'origin-2']);
  const all = (cards: () => number) => () => readStartSettings({ CONTINUO_DEVICES: 'all' }, cards);
  expect(all(() => 0)).toThrow(/^CONTINUO_DEVICES: the NVIDIA driver finds no CUDA card/);
  const missing = () => {
    throw new Error('is missing (libcuda.so.1)');
  };
  expect(all(missing)).toThrow(/^CONTINUO_DEVICES: the NVIDIA driver is missing/);
});

test('refuses cards that contradict other variables, by name', () => {
  const refusal = (environment: Environment) => () =>
    readStartSettings({ CONTINUO_DEVICES: '0,1', ...environment });
  expect(refusal({ CONTINUO_DEVICE_ID: '1' })).toThrow(/^CONTINUO_DEVICES: CONTINUO_DEVICE_ID is set/);
  expect(refusal({ UPSTREAMS: '[]' })).toThrow(/^CONTINUO_DEVICES: UPSTREAMS is set/);
  expect(refusal({ CONTINUO_PORT: '9101' })).toThrow(/^CONTINUO_ORIGIN_PORT: 9101 is already CONTINUO_PORT/);
  expect(refusal({ CONTINUO_METRICS_PORT: '8786' })).toThrow(
    /^CONTINUO_METRICS_PORT: 8787 is already CONTINUO_PORT/,
  );
  expect(refusal({ CONTINUO_METRICS_PORT: '9100' })).toThrow(
    /^CONTINUO_METRICS_PORT: 9100 is already CONTINUO_ORIGIN_PORT/,
  );
  expect(refusal({ CONTINUO_ORIGIN_PORT: '65535' })).toThrow(
    /^CONTINUO_ORIGIN_PORT: port 65536 does not exist/,
  );
  expect(refusal({ CONTINUO_DEVICES: '0;1' })).toThrow(/^CONTINUO_DEVICES: received "0;1"; expected all/);
  expect(() => readConfig({ CONTINUO_DEVICES: '0,1' })).toThrow(/^CONTINUO_DEVICES: only npm start reads it/);
});
