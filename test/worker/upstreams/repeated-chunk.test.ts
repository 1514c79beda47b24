import { expect, test } from 'vitest';
import { NEUTRAL_SAMPLING } from '../../../shared/sampling.ts';
import { OpenAiEvents } from '../../../worker/upstreams/openai-events.ts';
import { request } from '../../support/generation-request.ts';
import { randomFrom, runs } from '../../support/random.ts';

const SHOWN = { echo: false, echoLast: null, promptLogprobs: null };
const TEXTS = ['', ' a', 'b"', '\\', '\\"', '\n', 'é€😀', '","index":1,"text":"', '{"text":"a"}', '\u2028'];
const HEADS = [{}, { id: 'x' }, { note: { text: 'a' } }, { note: 'the "text":"a"' }, { text: null }];

const newEvents = () =>
  new OpenAiEvents(request({ choices: 2, stream: true, sampling: NEUTRAL_SAMPLING }), SHOWN);

/** Escapes as Python's `json.dumps` does, with spaces after colons and commas. */
const pythonJson = (json: string): string =>
  json
    .replace(/":(?=["{[tfn\d])/g, '": ')
    .replace(/[\u007f-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);

test('chunks that repeat all but their text give the events of chunks that are parsed', () => {
  const random = randomFrom(7);
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)]!;
  for (let stream = 0; stream < runs(300); stream += 1) {
    const [repeating, parsing] = [newEvents(), newEvents()];
    const [head, style] = [pick(HEADS), pick([(json: string) => json, pythonJson])];
    for (let count = 0; count < 40; count += 1) {
      const index = random() < 0.9 ? 0 : 1;
      const more = pick([
        {},
        {},
        {},
        {},
        { finish_reason: 'length' },
        { logprobs: null },
        { stop_reason: 3 },
      ]);
      const usage = random() < 0.1 ? { usage: { prompt_tokens: 1, completion_tokens: count } } : {};
      const last = random() < 0.01 ? { error: { message: 'x' } } : {};
      const choices = [{ index, text: pick(TEXTS), finish_reason: null, ...more }];
      const payload = style(JSON.stringify({ ...head, choices, ...usage, ...last }));
      // White space in another place each time: no chunk repeats the one before.
      const other = `${' '.repeat(count % 7)}${payload}`;
      expect(repeating.push(payload), payload).toEqual(parsing.push(other));
    }
    expect(repeating.push('[DONE]')).toEqual(parsing.push('[DONE]'));
  }
});

test.each(['"a', 'a"', '"a","b"', '"a\u0001"', '"\\x"', '1'])(
  'a chunk is malformed if the JSON of its text is: %j',
  (broken) => {
    const events = newEvents();
    const payload = (json: string) => `{"choices":[{"index":0,"text":${json}}]}`;
    expect(events.push(payload('"a"'))).toHaveLength(1);
    expect(() => events.push(payload(broken))).toThrow();
  },
);
