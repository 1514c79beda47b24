import { expect, test } from 'vitest';
import { forAllTests } from '../../support/for-tests.ts';
import { MODEL, startFakeOrigin } from '../support/fake-origin.ts';
import { startWorker } from '../support/worker.ts';
import { asNewForEach } from '../support/worker-for-tests.ts';
import { startFakeOpenAi } from '../upstreams/fake-openai.ts';

const origin = forAllTests(startFakeOrigin);
const openAi = forAllTests(startFakeOpenAi);
const worker = forAllTests(() => {
  const models = [{ id: 'theirs', contextLength: 64 }];
  const UPSTREAMS = JSON.stringify([
    { kind: 'origin', name: 'origin', url: origin.url },
    { kind: 'openai', name: 'backend', url: openAi.url, models },
  ]);
  const entry = 'test/worker/support/entries/telling-log.ts';
  return startWorker(origin, { LOG_REQUESTS: 'true', UPSTREAMS }, { entry });
});
asNewForEach(origin);

const logged = async () => (await (await worker.request('/log')).json()) as string[];

/** Returns the log line of one request. */
async function lineOf(fields: Readonly<Record<string, unknown>>) {
  await worker.post({ model: MODEL.id, prompt: 'a prompt', ...fields });
  return JSON.parse((await logged()).at(-1) ?? '') as { user: string | null; status: number };
}

test('logs an end user as a stable hash, and no end user as null', async () => {
  const first = await lineOf({ user: 'jane@example.com' });
  expect(first).toMatchObject({ status: 200, user: expect.stringMatching(/^[0-9a-f]{16}$/) });
  expect((await lineOf({ user: 'jane@example.com', stream: true })).user).toBe(first.user);
  expect((await lineOf({ user: 'john@example.com' })).user).not.toBe(first.user);
  expect((await lineOf({})).user).toBeNull();
});

test('logs no name, prompt or key', async () => {
  await lineOf({ user: 'jane@example.com', prompt: 'a secret thought' });
  const text = (await logged()).join('\n');
  for (const secret of ['jane', 'thought', 'test-key']) expect(text).not.toContain(secret);
});

test('logs which model server failed, with its status and code but not its message', async () => {
  const error = { message: 'the key sk-1 is wrong for a prompt', type: 'auth', code: 'bad_key' };
  openAi.script = (_, response) => response.writeHead(401).end(JSON.stringify({ error }));
  const refused = await worker.post({ model: 'theirs', prompt: 'a prompt' });
  expect(refused.status).toBe(502);
  const failures = (await logged()).filter((line) => line.includes('upstream_failed'));
  expect(failures.map((line) => JSON.parse(line))).toMatchObject([
    { upstream: 'backend', status: 401, type: 'auth', code: 'bad_key' },
  ]);
  for (const text of [failures.join(), await refused.text()]) expect(text).not.toMatch(/sk-1|a prompt/);
});
