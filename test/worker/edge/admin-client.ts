import type { RunningWorker } from '../support/worker.ts';

export const ADMIN_KEY = 'admin-key-of-the-tests';

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: the tests look at whatever JSON comes back
  readonly body: any;
}

/** Calls the admin API; the key is the bootstrap one unless another is given. */
export async function admin(
  worker: RunningWorker,
  method: string,
  path: string,
  body?: unknown,
  key = ADMIN_KEY,
): Promise<Answer> {
  const response = await worker.request(`/admin/v1${path}`, {
    method,
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: response.status, headers: response.headers, body: await response.json() };
}

/** A tenant with one key; the key itself is returned. */
export async function tenantWithKey(
  worker: RunningWorker,
  id: string,
  limits: Readonly<Record<string, number>> = {},
  key: Readonly<Record<string, unknown>> = {},
): Promise<{ key: string; keyId: string }> {
  await admin(worker, 'POST', '/tenants', { id, name: id, limits });
  const { body } = await admin(worker, 'POST', '/keys', { tenant: id, name: 'test', ...key });
  return { key: body.key, keyId: body.id };
}

/** POST /v1/completions with a key. */
export async function completion(
  worker: RunningWorker,
  key: string,
  fields: Readonly<Record<string, unknown>> = {},
): Promise<Answer> {
  const response = await worker.post(
    { model: 'org/tiny', prompt: 'Hi', max_tokens: 4, ...fields },
    { headers: { authorization: `Bearer ${key}` } },
  );
  return { status: response.status, headers: response.headers, body: await response.json() };
}
