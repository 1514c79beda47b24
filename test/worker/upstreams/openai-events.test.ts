import { expect, test } from 'vitest';
import { OpenAiEvents } from '../../../worker/upstreams/openai-events.ts';
import { request } from '../../support/generation-request.ts';

test('no event follows an error, also within one chunk', () => {
  const events = new OpenAiEvents(request({ choices: 2 }), {
    echo: false,
    echoLast: null,
    promptLogprobs: null,
  });
  const choices = [
    { index: 0, text: 'a', finish_reason: 'abort' },
    { index: 1, text: 'b' },
  ];
  expect(events.push(JSON.stringify({ choices })).map(({ type }) => type)).toEqual(['token', 'error']);
  expect(events.push('[DONE]')).toEqual([]);
  expect(events.end()).toEqual([]);
});
