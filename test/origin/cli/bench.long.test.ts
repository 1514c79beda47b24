import { expect, test } from 'vitest';
import { freePort } from '../../support/system.ts';
import { acceptedFor, doneFor, finishOf, tokenEvent } from '../../worker/support/scripts.ts';
import { KEY } from '../../worker/support/worker.ts';
import { workerForTests } from '../../worker/support/worker-for-tests.ts';
import { runCli } from './run-cli.ts';

const { worker, origin } = workerForTests();

const bench = (words: readonly string[], terminal?: { readonly hasColors: boolean }) =>
  runCli(['bench', ...words], {
    environment: { CONTINUO_URL: worker.url, CONTINUO_API_KEY: KEY },
    ...(terminal === undefined ? {} : { terminal }),
  });

test('keeps the given number of requests running and reports each load', async () => {
  const running = { now: 0, most: 0 };
  const both = Promise.withResolvers<void>();
  origin.script = async (request, wire) => {
    running.now += 1;
    running.most = Math.max(running.most, running.now);
    // The first two requests end only once both are running.
    if (running.now === 2) both.resolve();
    await both.promise;
    wire.send(...acceptedFor(request), tokenEvent(1), tokenEvent(2));
    wire.send(finishOf(0, 'length', 2), doneFor(request, 2));
    wire.end();
    running.now -= 1;
  };
  const words = ['--concurrency', '2', '--requests', '6', '--max-tokens', '2', '--json'];
  const { code, stdout, stderr } = await bench(words);
  expect([code, stderr, running.most]).toEqual([0, '', 2]);
  expect(JSON.parse(stdout)).toEqual([
    {
      concurrency: 2,
      requests: 6,
      errors: 0,
      requests_per_second: expect.any(Number),
      tokens_per_second: expect.any(Number),
      ...Object.fromEntries(
        ['first_token', 'per_token', 'between'].flatMap((name) =>
          ['p50', 'p95', 'p99'].map((part) => [`${name}_${part}_ms`, expect.any(Number)]),
        ),
      ),
    },
  ]);
  expect(origin.requests).toHaveLength(6);
  expect(origin.requests[0]).toMatchObject({ maxTokens: 2, ignoreEos: true });
});

test('prints one row per concurrency, and a bar only on a terminal', async () => {
  const words = ['--concurrency', '1,3', '--requests', '3', '--max-tokens', '2'];
  const piped = await bench(words);
  expect(piped.stdout.match(/^[13]\t3\t0\t/gm)).toHaveLength(2);
  expect(piped.stderr).toMatch(/^concurrency\trequests\t[^\n]*\n$/);
  const shown = await bench(words, { hasColors: true });
  expect(shown.stderr).toContain('6/6 requests');
});

test('without a server, the exit code is that of no connection', async () => {
  const environment = { CONTINUO_URL: `http://127.0.0.1:${await freePort()}`, CONTINUO_API_KEY: KEY };
  const { code, stderr } = await runCli(['bench', '--concurrency', '1', '--requests', '1'], { environment });
  expect(code).toBe(3);
  expect(stderr).toContain('ECONNREFUSED');
});

test('counts failed requests and names their causes; fails if all fail', async () => {
  let count = 0;
  const { script } = origin;
  origin.script = (request, wire) => {
    if (++count === 2)
      wire.refuse(400, {
        error: { message: 'Not today.', type: 'invalid_request_error', param: null, code: 'invalid_value' },
      });
    else void script(request, wire);
  };
  const some = await bench(['--concurrency', '1', '--requests', '3', '--json']);
  expect([some.code, some.stderr]).toEqual([0, 'Not today.\n']);
  expect(JSON.parse(some.stdout)).toMatchObject([{ requests: 3, errors: 1 }]);
  const none = await bench(['--model', 'none', '--concurrency', '1', '--requests', '2']);
  expect(none.code).toBe(1);
  expect(none.stderr).toMatch(/model 'none' does not exist[^\n]*\ncontinuo: All requests failed\.\n$/);
});

test('rejects a list with a wrong number', async () => {
  expect(await bench(['--concurrency', '1,x'])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('Expected a whole number of at least 1'),
  });
});
