import { expect, test, vi } from 'vitest';
import { type StreamUpdate, streamCompletion } from '../../../../worker/site/api/completion-stream.ts';

const CONNECTION = { key: 'sk-test', dialect: null };

const chunk = (fields: Record<string, unknown>) =>
  `data: ${JSON.stringify({ choices: [{ index: 0, text: '', logprobs: null, finish_reason: null, ...fields }] })}\n\n`;

/** Serves one response; its body arrives in the given parts. */
function answerWith(parts: readonly string[], init: ResponseInit = {}): void {
  const encoder = new TextEncoder();
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const part of parts) controller.enqueue(encoder.encode(part));
      controller.close();
    },
  });
  vi.stubGlobal('navigator', { onLine: true });
  vi.stubGlobal('fetch', async () => new Response(body, init));
}

async function collect(): Promise<StreamUpdate[]> {
  const updates: StreamUpdate[] = [];
  const signal = new AbortController().signal;
  for await (const update of streamCompletion(CONNECTION, { prompt: 'a' }, signal)) updates.push(update);
  return updates;
}

test('yields the tokens of each chunk with sorted alternatives, however the bytes are split', async () => {
  const logprobs = {
    tokens: [' 1'],
    token_logprobs: [-0.5],
    top_logprobs: [{ 2: -2, ' 1': -0.5, 1: -1 }],
    top_token_ids: [{ 2: 12, ' 1': 42, 1: 11 }],
    text_offset: [7],
  };
  const text = chunk({ text: ' 1', logprobs, token_ids: [42] });
  const usage = { prompt_tokens: 3, completion_tokens: 1, prompt_tokens_details: { cached_tokens: 2 } };
  const end = `: keep-alive\n\ndata: ${JSON.stringify({ choices: [], usage })}\n\ndata: [DONE]\n\n`;
  answerWith([...(text + end)], {
    headers: { 'x-ratelimit-limit-requests': '60', 'x-ratelimit-remaining-requests': '59' },
  });
  const [start, choice, last] = await collect();
  expect(start).toMatchObject({ limits: { requests: { left: 59, of: 60 }, tokens: null } });
  expect(choice).toMatchObject({
    text: ' 1',
    offsets: [7],
    tokens: [
      {
        name: ' 1',
        id: 42,
        logprob: -0.5,
        alternatives: [
          { name: ' 1', id: 42 },
          { name: '1', id: 11 },
          { name: '2', id: 12 },
        ],
      },
    ],
  });
  expect(last).toEqual({ type: 'usage', usage: { promptTokens: 3, completionTokens: 1, cachedTokens: 2 } });
});

test('a stream without [DONE] fails as cut', async () => {
  answerWith([chunk({ text: 'a' })]);
  await expect(collect()).rejects.toMatchObject({ kind: 'cut-stream' });
});

test('an error event fails with its message', async () => {
  const error = { message: 'The origin died.', type: 'server_error', param: null, code: 'upstream_error' };
  answerWith([chunk({ text: 'a' }), `data: ${JSON.stringify({ error })}\n\n`, 'data: [DONE]\n\n']);
  await expect(collect()).rejects.toMatchObject({ kind: 'origin-down', message: 'The origin died.' });
});

test.each([
  ['invalid_grammar', 'invalid_request_error', 'invalid-request'],
  ['invalid_api_key', 'invalid_request_error', 'key-refused'],
  ['tenant_suspended', 'permission_error', 'key-refused'],
  ['insufficient_quota', 'insufficient_quota', 'quota-exhausted'],
  ['rate_limit_exceeded', 'tokens', 'rate-limited'],
  ['server_is_overloaded', 'server_error', 'overloaded'],
  ['upstream_timeout', 'server_error', 'timed-out'],
  ['internal_error', 'server_error', 'server-error'],
  [400, 'invalid_request_error', 'invalid-request'],
  [429, 'requests', 'rate-limited'],
  [500, 'server_error', 'server-error'],
  [502, 'server_error', 'origin-down'],
  [504, 'server_error', 'timed-out'],
])('an error event with code %s and type %s is the failure "%s"', async (code, type, kind) => {
  const error = { message: 'Why.', type, param: null, code };
  answerWith([chunk({ text: 'a' }), `data: ${JSON.stringify({ error })}\n\n`, 'data: [DONE]\n\n']);
  await expect(collect()).rejects.toMatchObject({ kind, message: 'Why.' });
});

test.each([
  [401, 'missing_api_key', 'invalid_request_error', 'no-key'],
  [401, 'invalid_api_key', 'invalid_request_error', 'key-refused'],
  [403, 'tenant_suspended', 'permission_error', 'key-refused'],
  [429, 'rate_limit_exceeded', 'requests', 'rate-limited'],
  [429, 429, 'insufficient_quota', 'quota-exhausted'],
  [503, 'model_loading', 'server_error', 'model-loading'],
  [503, 503, 'unavailable_error', 'model-loading'],
  [503, 'server_is_overloaded', 'server_error', 'overloaded'],
  [502, 502, 'server_error', 'origin-down'],
  [400, 'invalid_type', 'invalid_request_error', 'invalid-request'],
])('status %i with code %s and type %s is the failure "%s"', async (status, code, type, kind) => {
  answerWith([JSON.stringify({ error: { message: 'Why.', type, param: 'stop', code } })], {
    status,
    headers: { 'retry-after': '3', 'retry-after-ms': '2500', 'x-request-id': 'req_1' },
  });
  await expect(collect()).rejects.toMatchObject({
    kind,
    status,
    message: 'Why.',
    param: 'stop',
    retryAfterMs: 2500,
    requestId: 'req_1',
  });
});

test.each([
  [true, 'unreachable'],
  [false, 'offline'],
])('a request without a response: online is %s, so the failure is "%s"', async (onLine, kind) => {
  vi.stubGlobal('location', { host: 'localhost' });
  vi.stubGlobal('navigator', { onLine });
  vi.stubGlobal('fetch', () => Promise.reject(new TypeError('Failed to fetch')));
  await expect(collect()).rejects.toMatchObject({ kind });
});
