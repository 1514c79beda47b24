import { expect, test } from 'vitest';
import { MODEL } from '../support/fake-origin.ts';
import { workerForTests } from '../support/worker-for-tests.ts';

const { worker } = workerForTests({ LOG_REQUESTS: 'true' }, { entry: 'test/worker/support/telling-log.ts' });

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
