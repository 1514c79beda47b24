import '../support/page-globals.ts';
import { signal } from '@preact/signals';
import { h } from 'preact';
import { expect, test, vi } from 'vitest';
import { operationsOf } from '../../../../worker/site/docs/documents.ts';
import { TryIt } from '../../../../worker/site/docs/operation/try-it.tsx';
import { type Session, SessionContext } from '../../../../worker/site/store/session.ts';
import { waitFor } from '../../../support/wait-for.ts';
import { rendered } from '../support/rendered.ts';
import { publicDocument } from './public-document.ts';

const ORIGIN = 'https://endpoint.test';
const KEY = 'sk-of-this-visitor';
const OPERATIONS = operationsOf(await publicDocument(), 'api');

/** The form of an operation, and the requests that it sends. */
function opened(path: string, method: string, reply: (body: string) => Response = () => Response.json({})) {
  const sent: { readonly url: string; readonly headers: Headers; readonly body: string }[] = [];
  vi.stubGlobal('location', { origin: ORIGIN });
  vi.stubGlobal('navigator', { onLine: true });
  vi.stubGlobal('fetch', async (url: string, { headers, body = '' }: RequestInit) => {
    sent.push({ url, headers: headers as Headers, body: String(body) });
    return reply(String(body));
  });
  const session = { key: signal(KEY) } as unknown as Session;
  const listed = OPERATIONS.find((each) => each.path === path && each.method === method)!;
  const page = rendered(h(SessionContext.Provider, { value: session }, h(TryIt, { listed })));
  const response = () => page.all('section', 'Response')[0]?.textContent ?? '';
  /** Sends the form when the last request has ended. */
  const send = () => waitFor(() => page.press('Send'));
  return { sent, page, response, send };
}

const completions = (reply?: (body: string) => Response) => opened('/v1/completions', 'POST', reply);

test('a reply is shown with its status and headers, and the key is in a header of the request only', async () => {
  const { sent, page, response, send } = completions(() => Response.json({ choices: [{ text: ' upon' }] }));
  const body = '{"model":"default","prompt":"Once","max_tokens":5}';
  page.write('Body', body);
  await send();
  await waitFor(() => expect(response()).toContain('"text": " upon"'));
  expect(response()).toContain('Status 200');
  expect(response()).toContain('content-type: application/json');
  const [{ url, headers, ...request }] = sent as [(typeof sent)[number]];
  expect([url, headers.get('authorization'), request.body]).toEqual([
    `${ORIGIN}/v1/completions`,
    `Bearer ${KEY}`,
    body,
  ]);
  expect(page.text()).not.toContain(KEY);
});

test('a stream is shown as it arrives, and an error with its status', async () => {
  const error = { code: 'missing_required_parameter' };
  const { sent, page, response, send } = completions((body) =>
    body.includes('"stream": true')
      ? new Response('data: {}\n\ndata: [DONE]\n\n')
      : Response.json({ error }, { status: 400 }),
  );
  page.field('Example').value = 'stream';
  page.field('Example').dispatch('change');
  await waitFor(() => expect(page.field('Body').value).toContain('"stream": true'));
  await send();
  await waitFor(() => expect(response()).toContain('data: [DONE]'));
  page.write('Body', '{"prompt":"Once"}');
  await send();
  await waitFor(() => expect(response()).toContain('missing_required_parameter'));
  expect(response()).toContain('Status 400');
  expect(sent).toHaveLength(2);
});

test('a body that is not JSON is named', async () => {
  const { page } = completions();
  page.write('Body', '{"prompt":');
  await waitFor(() => expect(page.text()).toContain('The body is not JSON'));
});

test('values go into the path and the headers of the request and of the code', async () => {
  const { sent, page, send } = opened('/v1/models/{id}', 'GET');
  page.write('id', 'org/tiny');
  page.write('x-dialect', 'vllm');
  await waitFor(() => expect(page.all('code', 'x-dialect: vllm')).toHaveLength(1));
  await send();
  await waitFor(() => expect(sent).toHaveLength(1));
  expect([sent[0]!.url, sent[0]!.headers.get('x-dialect')]).toEqual([
    `${ORIGIN}/v1/models/org%2Ftiny`,
    'vllm',
  ]);
});

test('a deletion is sent only after a question', async () => {
  const { sent, page, send } = opened('/v1/files/{id}', 'DELETE');
  page.write('id', 'file-1');
  await send();
  await waitFor(() => expect(page.text()).toContain('This cannot be undone.'));
  page.press('Cancel');
  await waitFor(() => expect(page.all('dialog')).toEqual([]));
  expect(sent).toEqual([]);
  await send();
  await waitFor(() => page.press('Delete'));
  await waitFor(() => expect(sent.map(({ url }) => url)).toEqual([`${ORIGIN}/v1/files/file-1`]));
});
