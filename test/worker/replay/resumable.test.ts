import { beforeEach, expect, test } from 'vitest';
import { ADMIN_KEY_SHA256, tenantWithKey } from '../admin/admin-client.ts';
import { acceptedFor, doneFor, finishOf, stepsFor, tokenEvent } from '../support/scripts.ts';
import { KEY } from '../support/worker.ts';
import { workerForTests } from '../support/worker-for-tests.ts';

/** True if the Worker closed the origin's stream before its end. */
let dropped = false;

const { worker, origin } = workerForTests({ ADMIN_KEY_SHA256 });
beforeEach(() => {
  dropped = false;
  origin.script = async (request, wire) => {
    for (const events of stepsFor(request)) {
      if (wire.gone()) dropped = true;
      wire.send(...events);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    wire.end();
  };
});

interface SeenEvent {
  readonly id: string | null;
  readonly data: string;
}

const BODY = { model: 'org/tiny', prompt: 'Hi', max_tokens: 8, stream: true };

/** Returns the first `count` events of a stream, or all. */
async function read(response: Response, count = Number.POSITIVE_INFINITY): Promise<SeenEvent[]> {
  const events: SeenEvent[] = [];
  let pending = '';
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  while (events.length < count) {
    const { value, done } = await reader.read();
    if (done) return events;
    const blocks = (pending + value).split('\n\n');
    pending = blocks.pop() ?? '';
    for (const block of blocks) {
      const data = /^data: (.*)$/m.exec(block)?.[1];
      if (data !== undefined) events.push({ id: /^id: (.*)$/m.exec(block)?.[1] ?? null, data });
    }
  }
  await reader.cancel();
  return events.slice(0, count);
}

const start = (signal: AbortSignal | null = null) =>
  worker.post(BODY, { headers: { 'x-resumable': 'true' }, signal });

const resume = (id: string, last: string | null, key = KEY) =>
  worker.request(`/v1/completions/${id}/stream`, {
    headers: { authorization: `Bearer ${key}`, ...(last === null ? {} : { 'last-event-id': last }) },
  });

const idOf = (events: readonly SeenEvent[]): string => JSON.parse(events[0]!.data).id as string;

/** Returns the events of a stream without the completion's id. */
const texts = (events: readonly SeenEvent[]) =>
  events.map(({ data }) => (data === '[DONE]' ? data : JSON.parse(data).choices));

test('resumes after a lost connection without repeating events', async () => {
  const whole = await read(await worker.post(BODY));
  const connection = new AbortController();
  const seen = await read(await start(connection.signal), 3);
  connection.abort();
  expect(seen.map(({ id }) => id)).toEqual(['1', '2', '3']);
  const rest = await read(await resume(idOf(seen), '3'));
  expect(texts([...seen, ...rest])).toEqual(texts(whole));
  expect(rest.map(({ id }) => Number(id))).toEqual(rest.map((_, index) => index + 4));
  expect(rest.at(-1)?.data).toBe('[DONE]');
  expect(dropped).toBe(false);
});

test('serves an ended stream again, any number of times', async () => {
  const seen = await read(await start());
  const id = idOf(seen);
  expect(await read(await resume(id, null))).toEqual(seen);
  expect(await read(await resume(id, '4'))).toEqual(seen.slice(4));
  expect(await read(await resume(id, String(seen.length)))).toEqual([]);
});

test('serves events that are larger than one stored value', async () => {
  const text = 'né🙂'.repeat(900_000);
  origin.script = (request, wire) => {
    wire.send(...acceptedFor(request), tokenEvent(1, text), finishOf(0, 'length', 1), doneFor(request, 1));
    wire.end();
  };
  const seen = await read(await start());
  const told = seen.slice(0, -1).flatMap(({ data }) => JSON.parse(data).choices as { text: string }[]);
  expect(told.map((choice) => choice.text).join('') === text).toBe(true);
  expect(await read(await resume(idOf(seen), null))).toEqual(seen);
});

test('repeats the headers that say what was ignored', async () => {
  origin.ignoredKeywords = 'titel';
  try {
    const body = { ...BODY, guided_jsn: {}, json_schema: { titel: 'x' } };
    const first = await worker.post(body, { headers: { 'x-resumable': 'true' } });
    const again = await resume(idOf(await read(first)), '0');
    for (const { headers } of [first, again]) {
      expect(headers.get('x-ignored-fields')).toBe('guided_jsn');
      expect(headers.get('x-ignored-keywords')).toBe('titel');
    }
  } finally {
    origin.ignoredKeywords = null;
  }
});

test('serves a stream only to its tenant', async () => {
  const id = idOf(await read(await start()));
  const { key } = await tenantWithKey(worker, 'somebody-else');
  expect((await resume(id, '0', key)).status).toBe(404);
  expect((await resume(id, '0', 'wrong')).status).toBe(401);
  expect((await resume(id, 'x')).status).toBe(400);
});

test('rejects an event id beyond the end of the stream', async () => {
  const seen = await read(await start());
  const beyond = await resume(idOf(seen), String(seen.length + 1));
  expect([beyond.status, await beyond.json()]).toMatchObject([
    400,
    { error: { code: 'invalid_value', param: 'last-event-id' } },
  ]);
});

test.each(['false', '1', ''])('rejects the header with the value "%s"', async (value) => {
  const answer = await worker.post(BODY, { headers: { 'x-resumable': value } });
  expect([answer.status, await answer.json()]).toMatchObject([400, { error: { param: 'x-resumable' } }]);
});

test('stores nothing and numbers no events without the header', async () => {
  const plain = await read(await worker.post(BODY));
  expect(plain.every(({ id }) => id === null)).toBe(true);
  expect((await resume(idOf(plain), '0')).status).toBe(404);
  expect((await resume('nonsense', '0')).status).toBe(404);
});

test('passes errors and plain responses through unchanged', async () => {
  const headers = { 'x-resumable': 'true' };
  const wrong = await worker.post({ ...BODY, n: 0 }, { headers });
  expect([wrong.status, ((await wrong.json()) as { error: { param: string } }).error.param]).toEqual([
    400,
    'n',
  ]);
  const plain = await worker.post({ ...BODY, stream: false }, { headers });
  expect(((await plain.json()) as { object: string }).object).toBe('text_completion');
});
