import type { AnswerBody } from '../admin/admin-client.ts';
import type { WorkerClient } from '../support/worker.ts';

/** Returns what sends requests of an account with a key. */
export const accountAt =
  (worker: WorkerClient) => async (key: string, method: string, path: string, body?: unknown) => {
    const response = await worker.request(`/v1${path}`, {
      method,
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return { status: response.status, body: (await response.json()) as AnswerBody };
  };
