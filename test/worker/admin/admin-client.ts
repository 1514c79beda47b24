import { createHash } from 'node:crypto';
import type { WorkerClient } from '../support/worker.ts';

export const ADMIN_KEY = 'admin-key-of-the-tests';
export const ADMIN_KEY_SHA256 = createHash('sha256').update(ADMIN_KEY).digest('hex');

/** The fields of all admin responses. A test that reads a missing field fails at its expectation. */
export interface AnswerBody {
  readonly error: {
    readonly message: string;
    readonly type: string;
    readonly param: string | null;
    readonly code: string;
  };
  readonly id: string;
  readonly key: string;
  readonly name: string;
  readonly models: readonly string[];
  readonly limits: Readonly<Record<string, number | null>>;
  readonly suspended: boolean;
  readonly expires_at: number | null;
  readonly revoked_at: number | null;
  readonly replaced_by: string | null;
  readonly data: readonly AnswerBody[];
  readonly has_more: boolean;
  readonly as_of: number;
  readonly total: Readonly<Record<string, number>>;
  readonly usage: Readonly<Record<string, number>>;
  readonly choices: readonly {
    readonly text: string;
    readonly finish_reason: string;
    readonly logprobs: { readonly top_logprobs: readonly unknown[] };
  }[];
  readonly paths: Readonly<Record<string, unknown>>;
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: AnswerBody;
}

async function answerOf(response: Response): Promise<Answer> {
  return {
    status: response.status,
    headers: response.headers,
    body: (await response.json()) as AnswerBody,
  };
}

/** Calls the admin API, by default with the bootstrap key. */
export async function admin(
  worker: WorkerClient,
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
  return answerOf(response);
}

/** Creates a tenant with one key and returns the key. */
export async function tenantWithKey(
  worker: WorkerClient,
  id: string,
  limits: Readonly<Record<string, number>> = {},
  key: Readonly<Record<string, unknown>> = {},
): Promise<{ key: string; keyId: string }> {
  await admin(worker, 'POST', '/tenants', { id, name: id, limits });
  const { body } = await admin(worker, 'POST', '/keys', { tenant: id, name: 'test', ...key });
  return { key: body.key, keyId: body.id };
}

/** Sends POST /v1/completions with a key. */
export async function completion(
  worker: WorkerClient,
  key: string,
  fields: Readonly<Record<string, unknown>> = {},
): Promise<Answer> {
  const response = await worker.post(
    { model: 'org/tiny', prompt: 'Hi', max_tokens: 4, ...fields },
    { headers: { authorization: `Bearer ${key}` } },
  );
  return answerOf(response);
}
