import { expect, test } from 'vitest';
import { forAllTests } from '../../support/for-tests.ts';
import { MODEL, SECRET, startFakeOrigin } from '../support/fake-origin.ts';
import { startWorker } from '../support/worker.ts';
import { startFakeOpenAi } from './fake-openai.ts';

const origin = forAllTests(startFakeOrigin);
const openAi = forAllTests(startFakeOpenAi);
const models = [{ id: 'only', contextLength: 2_048, infill: true }];
const worker = forAllTests(() =>
  startWorker(origin, {
    UPSTREAMS: JSON.stringify([{ kind: 'openai', name: 'foreign', url: openAi.url, models }]),
    ORIGIN_SECRET: SECRET,
    MODELS_TTL_MS: '1',
  }),
);

const foreign = { kind: 'openai', name: 'foreign' };
const mirror = { kind: 'openai', name: 'mirror' };
const served = { kind: 'origin', name: 'served' };

test.each<[string, (urls: { theirs: string; own: string }) => object[], Record<string, string>?]>([
  ['of a foreign server', ({ theirs: url }) => [{ ...foreign, url, models }]],
  [
    'of two foreign servers',
    ({ theirs: url }) => [
      { ...foreign, url, models },
      { ...mirror, url, models },
    ],
  ],
  [
    'with aliases',
    ({ theirs: url }) => [{ ...foreign, url, models }],
    { MODEL_ALIASES: 'davinci-002=only,babbage-002=only' },
  ],
  [
    'of a foreign server beside an origin that does not answer',
    ({ theirs: url }) => [
      { ...served, url: 'http://127.0.0.1:9' },
      { ...foreign, url, models },
    ],
  ],
  ['of an origin that is asked for its models', ({ own: url }) => [{ ...served, url }]],
  [
    'of an origin under another name',
    ({ own: url }) => [{ ...served, url, models: [{ id: 'public', upstreamId: MODEL.id }] }],
  ],
])('a request without a model uses the only model %s', async (_, upstreams, variables = {}) => {
  const list = upstreams({ theirs: openAi.url, own: origin.url });
  const worker = await startWorker(origin, {
    UPSTREAMS: JSON.stringify(list),
    ORIGIN_SECRET: SECRET,
    ...variables,
  });
  try {
    const statusOf = async (path: string, body: object, dialect: string) => {
      const headers = { 'content-type': 'application/json', 'x-dialect': dialect };
      const response = await worker.postTo(path, body, headers);
      return [path, dialect, response.status, response.status === 200 || (await response.text())];
    };
    const gap = { input_prefix: 'a', input_suffix: 'b' };
    for (const [path, body, dialect] of [
      ['/completion', { prompt: 'a' }, 'llamacpp'],
      ['/infill', gap, 'llamacpp'],
      ...['llamacpp', 'mistralrs', 'vllm'].map((one) => ['/v1/completions', { prompt: 'a' }, one] as const),
    ] as const)
      expect(await statusOf(path, body, dialect)).toEqual([path, dialect, 200, true]);
    expect((await worker.request('/props')).status).toBe(200);
    expect((await worker.request('/v1/models/default')).status).toBe(200);
  } finally {
    await worker.stop();
  }
});

test('a model is listed as failed while its server cannot be reached', async () => {
  const state = async () => {
    const { data } = (await (await worker.request('/v1/models')).json()) as { data: { state: string }[] };
    return data[0]?.state;
  };
  expect(await state()).toBe('loaded');
  await openAi.stop();
  await expect.poll(state).toBe('failed');
});
