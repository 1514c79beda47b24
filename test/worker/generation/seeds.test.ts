import { expect, test } from 'vitest';
import { errorResponseBody } from '../../../shared/completion-response.ts';
import { sharedWorker } from '../support/worker-for-tests.ts';

const { worker, origin } = sharedWorker();

const send = (seed: string) =>
  worker.post(`{"model": "default", "prompt": "\\"seed\\": 5", "seed": ${seed}}`);

test.each([
  ['9007199254740991', 2 ** 53 - 1],
  ['9007199254740992', '9007199254740992'],
  ['9007199254740993', '9007199254740993'],
  ['9223372036854775807', '9223372036854775807'],
  ['-9223372036854775808', '-9223372036854775808'],
  ['1e18', '1000000000000000000'],
])('the seed %s reaches the origin with all digits', async (seed, sent) => {
  expect((await send(seed)).status).toBe(200);
  expect(origin.requests[0]?.sampling.seed).toBe(sent);
});

test('the last of two seeds counts, and one inside of another object does not', async () => {
  await send('1, "x": {"seed": 9007199254740997}, "seed": 9007199254740995');
  await send('3, "x": {"seed": 9007199254740997}');
  expect(origin.requests.map(({ sampling }) => sampling.seed)).toEqual(['9007199254740995', 3]);
});

test.each([
  ['9223372036854775808', 'integer_above_max_value', '<= 9223372036854775807, but got 9223372036854775808'],
  [
    '-9223372036854775809',
    'integer_below_min_value',
    '>= -9223372036854775808, but got -9223372036854775809',
  ],
  ['1e30', 'integer_above_max_value', 'but got 1000000000000000019884624838656'],
])('the seed %s is beyond 64 bits and is refused', async (seed, code, message) => {
  const { error } = errorResponseBody.parse(await (await send(seed)).json());
  expect(error).toMatchObject({ code, param: 'seed' });
  expect(error.message).toContain(message);
  expect(origin.requests).toEqual([]);
});

test('the settings of a native answer show the seed with all digits', async () => {
  const body = '{"prompt": "a", "n_predict": 1, "seed": 9007199254740993}';
  const headers = { 'content-type': 'application/json' };
  const response = await worker.request('/completion', { method: 'POST', headers, body });
  expect(await response.text()).toContain('"seed":9007199254740993,');
});
