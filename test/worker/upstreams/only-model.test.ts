import { expect, test } from 'vitest';
import { forAllTests } from '../../support/for-tests.ts';
import { SECRET, startFakeOrigin } from '../support/fake-origin.ts';
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

const post = async (path: string, body: object, dialect = 'llamacpp') => {
  const headers = { 'content-type': 'application/json', 'x-dialect': dialect };
  const response = await worker.request(path, { method: 'POST', headers, body: JSON.stringify(body) });
  return [path, dialect, response.status, response.status === 200 || (await response.text())];
};

test('a request without a model uses the only model of UPSTREAMS', async () => {
  expect(await post('/completion', { prompt: 'a' })).toEqual(['/completion', 'llamacpp', 200, true]);
  const gap = { input_prefix: 'a', input_suffix: 'b' };
  expect(await post('/infill', gap)).toEqual(['/infill', 'llamacpp', 200, true]);
  for (const dialect of ['llamacpp', 'mistralrs', 'vllm']) {
    expect(await post('/v1/completions', { prompt: 'a' }, dialect)).toEqual([
      '/v1/completions',
      dialect,
      200,
      true,
    ]);
  }
  expect((await worker.request('/props')).status).toBe(200);
  expect((await worker.request('/v1/models/default')).status).toBe(200);
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
