import { describe, expect, test } from 'vitest';
import { PROTOCOL_VERSION } from '../../../shared/generation.ts';
import { complete } from '../support/completions.ts';
import { MODEL } from '../support/fake-origin.ts';
import { sharedWorker } from '../support/worker-for-tests.ts';

const { worker, origin } = sharedWorker();

describe('a request to the origin', () => {
  test('identity, trace and limits come from the Worker; service fields of the client are ignored', async () => {
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
    await complete(
      worker,
      { request_id: 'evil', priority: -5, tenantId: 'other' },
      { traceparent, 'x-request-id': 'mine-1' },
    );
    expect(origin.requests[0]).toMatchObject({
      requestId: 'mine-1',
      model: MODEL.id,
      weight: 1,
      version: PROTOCOL_VERSION,
    });
    // A client may use its request id twice, so the account has a separate name.
    expect(origin.requests[0]?.account).toMatch(/^[0-9a-f]{16}\.\d+\.\d+\.p\.mine-1$/);
    expect(origin.requests[0]?.tenantId).not.toBe('other');
    expect(origin.headers[0]?.traceparent).toBe(traceparent);
  });

  test('keeps a valid x-request-id, replaces others, and every answer has one', async () => {
    const id = async (given: string) =>
      (await worker.request('/health', { headers: { 'x-request-id': given } })).headers.get('x-request-id');
    expect(await id('abc-1.2:3')).toBe('abc-1.2:3');
    expect(await id('has spaces')).toMatch(/^req_[0-9a-f]{32}$/);
    expect(await id('x'.repeat(129))).toMatch(/^req_[0-9a-f]{32}$/);
  });
});
