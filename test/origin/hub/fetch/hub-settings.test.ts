import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { readHubSettings } from '../../../../origin/hub/fetch/hub-settings.ts';
import { newDirectory } from '../../../support/new-directory.ts';

const HOME = '/home/someone';

test('defaults to the public hub, no token and the cache of Hugging Face’s tools', () => {
  expect(readHubSettings({}, HOME)).toEqual({
    endpoint: 'https://huggingface.co',
    token: null,
    cache: '/home/someone/.cache/huggingface/hub',
    offline: false,
  });
});

test.each([
  [{ HF_HOME: '/data/hf' }, '/data/hf/hub'],
  [{ HF_HOME: '~/hf' }, '/home/someone/hf/hub'],
  [{ HF_HOME: '/data/hf', HF_HUB_CACHE: '/fast/models' }, '/fast/models'],
  [{ XDG_CACHE_HOME: '/var/cache' }, '/var/cache/huggingface/hub'],
  [{ HF_HOME: '', HF_HUB_CACHE: '' }, '/home/someone/.cache/huggingface/hub'],
])('%j: the cache is %s', (environment, cache) => {
  expect(readHubSettings(environment, HOME).cache).toBe(cache);
});

test.each([
  ['1', true],
  ['TRUE', true],
  ['0', false],
  ['', false],
])('HF_HUB_OFFLINE=%s: offline is %j', (value, offline) => {
  expect(readHubSettings({ HF_HUB_OFFLINE: value }, HOME).offline).toBe(offline);
});

test('removes the slash at the end of HF_ENDPOINT and rejects other text than an address', () => {
  expect(readHubSettings({ HF_ENDPOINT: 'https://mirror.example/hf/' }, HOME).endpoint).toBe(
    'https://mirror.example/hf',
  );
  expect(() => readHubSettings({ HF_ENDPOINT: 'mirror.example' }, HOME)).toThrow(/^HF_ENDPOINT must be/);
  expect(() => readHubSettings({ HF_ENDPOINT: 'file:///etc' }, HOME)).toThrow(/^HF_ENDPOINT must be/);
});

test.each([
  'https://someone:secret@mirror.example',
  'https://mirror.example?a=b',
  'https://mirror.example#x',
])('rejects the endpoint %s, to which no path can be appended', (endpoint) => {
  expect(() => readHubSettings({ HF_ENDPOINT: endpoint }, HOME)).toThrow(
    /^HF_ENDPOINT must be an address without user, password, query and fragment$/,
  );
});

test.each(['hf_one\nhf_two', 'hf_ quoted', '“hf_token”'])(
  'rejects the token %j, which a header cannot carry, without showing it',
  (token) => {
    const reason = 'it contains white space or non-ASCII characters';
    expect(() => readHubSettings({ HF_TOKEN: token }, HOME)).toThrow(
      `HF_TOKEN is not a valid token: ${reason}`,
    );
    const home = newDirectory();
    const file = path.join(home, 'token');
    writeFileSync(file, token);
    expect(() => readHubSettings({ HF_HOME: home }, HOME)).toThrow(`${file} is not a valid token: ${reason}`);
  },
);

test('reads the token from HF_TOKEN, else from the token file of Hugging Face’s tools', () => {
  const home = newDirectory();
  mkdirSync(path.join(home, '.cache', 'huggingface'), { recursive: true });
  writeFileSync(path.join(home, '.cache', 'huggingface', 'token'), 'hf_file\n');
  expect(readHubSettings({}, home).token).toBe('hf_file');
  expect(readHubSettings({ HF_TOKEN: ' hf_variable ' }, home).token).toBe('hf_variable');
  expect(readHubSettings({ HF_TOKEN_PATH: path.join(home, 'none') }, home).token).toBe(null);
});
