import { expect, test } from 'vitest';
import { readStartSettings } from '../../../../origin/cli/start/settings.ts';

test('an empty variable counts as absent', () => {
  const empty = { CONTINUO_HOST: '', CONTINUO_PORT: '', CONTINUO_ORIGIN_PORT: '', CONTINUO_STATE_DIR: '' };
  expect(readStartSettings(empty)).toEqual(readStartSettings({}));
});

test('the URL of an IPv6 address has brackets', () => {
  expect(readStartSettings({ CONTINUO_HOST: '::1', CONTINUO_PORT: '8000' }).url).toBe('http://[::1]:8000');
  expect(readStartSettings({ CONTINUO_PORT: '8000' }).url).toBe('http://127.0.0.1:8000');
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
