import { expect, test } from 'vitest';
import { admin } from '../admin/admin-client.ts';
import { BatchClient, lineOf } from '../batches/batch-client.ts';
import { acceptedFor, doneFor, finishOf, token, tokenEvent } from '../support/scripts.ts';
import { payloadsOf } from '../support/sse.ts';
import { sharedWorker } from '../support/worker-for-tests.ts';

/** Readers of lines split at these, and so break a JSON text that has them raw. */
const TEXT = 'a\u2028b\u2029c\u0085d';
const RAW = /[\u0085\u2028\u2029]/;

const { worker, origin } = sharedWorker();

/** The model writes TEXT, with TEXT as the token and as the stop. */
function writeSeparators(): void {
  origin.script = (request, wire) => {
    const logprobs = request.topLogprobs === null ? {} : { logprobs: [token(7, TEXT, -1, 1)] };
    const said = { type: 'token', choice: 0, text: TEXT, completionTokens: 1, ...logprobs } as const;
    const finish = { ...finishOf(0, 'stop', 1), stopReason: TEXT };
    const logprobsOfPrompt = [token(1, 'x', null, 1), token(7, TEXT, -1, 1)];
    const prompt = { prompt: 0, text: TEXT, ids: [1, 7], logprobs: logprobsOfPrompt };
    const echoed = { type: 'prompt', ...prompt } as const;
    wire.send(...acceptedFor(request), ...(request.echo ? [echoed] : []), said, finish, doneFor(request, 1));
    wire.end();
  };
}

/** Returns the body of an answer, which has TEXT, but no raw separator. */
async function safeBody(answer: Response | Promise<Response>): Promise<string> {
  const body = await (await answer).text();
  expect(body).not.toMatch(RAW);
  expect(body).toContain(String.raw`a\u2028b\u2029c\u0085d`);
  return body;
}

const ASKED = { model: 'default', prompt: 'Hi', stop: 'x', logprobs: 1, echo: true };

test('a plain answer escapes them in text, logprobs and stop_reason, also when it is replayed', async () => {
  writeSeparators();
  const headers = { 'idempotency-key': 'separators' };
  const asked = { ...ASKED, prompt_logprobs: 1 };
  const first = await safeBody(worker.postTo('/v1/completions', asked, headers));
  expect(JSON.parse(first)).toMatchObject({
    choices: [{ text: TEXT + TEXT, stop_reason: TEXT, logprobs: { tokens: ['x', TEXT, TEXT] } }],
  });
  expect(await safeBody(worker.postTo('/v1/completions', asked, headers))).toBe(first);
});

test('a stream escapes them, also when it is resumed', async () => {
  writeSeparators();
  const answer = await worker.postTo(
    '/v1/completions',
    { ...ASKED, stream: true },
    { 'x-resumable': 'true' },
  );
  const body = await safeBody(answer);
  const id = /"id":"(cmpl-[^"]+)"/.exec(body)?.[1] ?? '';
  await safeBody(worker.request(`/v1/completions/${id}/stream`));
  const plain = await safeBody(worker.postTo('/v1/completions', { ...ASKED, stream: true }));
  expect(payloadsOf(plain)).toContainEqual(
    expect.objectContaining({ choices: [expect.objectContaining({ stop_reason: TEXT })] }),
  );
});

test('the native addresses and the tokenizer escape them', async () => {
  writeSeparators();
  await safeBody(worker.postTo('/completion', { prompt: 'Hi', n_probs: 1 }));
  await safeBody(worker.postTo('/completion', { prompt: 'Hi', n_probs: 1, stream: true }));
  const pieces = await worker.postTo('/tokenize', { prompt: TEXT, return_token_strs: true });
  expect(await pieces.text()).toContain(String.raw`"a","\u2028","b","\u2029","c","\u0085","d"`);
  const text = await worker.postTo('/detokenize', { tokens: [97, 0x85] });
  expect(await text.text()).toBe(String.raw`{"prompt":"a\u0085"}`);
});

test('errors escape them, plain and in a stream', async () => {
  await safeBody(worker.postTo('/v1/completions', { model: TEXT, prompt: 'Hi' }));
  origin.script = (request, wire) => {
    const error = { code: 'upstream_error', message: TEXT, param: null, retryable: false } as const;
    wire.send(...acceptedFor(request), tokenEvent(1), { type: 'error', ...error });
    wire.end();
  };
  await safeBody(worker.postTo('/v1/completions', { model: 'default', prompt: 'Hi', stream: true }));
});

test('the result file of a batch and the admin API escape them', async () => {
  writeSeparators();
  const client = new BatchClient(worker);
  const { id } = await client.start(lineOf(TEXT), { metadata: { note: TEXT } });
  const batch = await client.until(id, 'completed');
  await safeBody(worker.request(`/v1/files/${batch.output_file_id}/content`));
  await safeBody(worker.request(`/v1/batches/${id}`));
  const { body } = await admin(worker, 'POST', '/tenants', { id: 'lines', name: TEXT });
  expect(body.name).toBe(TEXT);
});
