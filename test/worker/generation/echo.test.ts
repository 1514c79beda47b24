import { describe, expect, test } from 'vitest';
import { complete, stream } from '../support/completions.ts';
import { acceptedFor, doneFor, finishOf, promptEvents, token } from '../support/scripts.ts';
import { sharedWorker } from '../support/worker-for-tests.ts';

const { worker, origin } = sharedWorker();

describe('echo', () => {
  test('with logprobs 1 and max_tokens 1 a prompt of k tokens has k + 1 entries', async () => {
    const [choice] = (await complete(worker, { prompt: [5, 6, 7], echo: true, logprobs: 1, max_tokens: 1 }))
      .choices;
    const logprobs = choice?.logprobs;
    expect(choice?.text).toBe('<5><6><7> 0');
    expect(logprobs?.tokens).toEqual(['<5>', '<6>', '<7>', ' 0']);
    expect(logprobs?.token_logprobs).toEqual([null, -1.5, -1.5, -0.1]);
    expect(logprobs?.top_logprobs).toEqual([null, { '<6>': -1.5 }, { '<7>': -1.5 }, { ' 0': -0.1 }]);
    expect(logprobs?.text_offset).toEqual([0, 3, 6, 9]);
  });

  test('the end token has an entry although its text is hidden', async () => {
    origin.script = (request, wire) => {
      const end = { ...token(1, '<|end|>', -0.25, 1), hidden: true };
      wire.send(
        ...acceptedFor(request),
        { type: 'token', choice: 0, text: '', completionTokens: 1, logprobs: [end] },
        finishOf(0, 'stop', 1),
        doneFor(request, 1),
      );
      wire.end();
    };
    const [choice] = (await complete(worker, { logprobs: 1 })).choices;
    expect(choice?.text).toBe('');
    expect(choice?.logprobs).toMatchObject({
      tokens: ['<|end|>'],
      token_logprobs: [-0.25],
      text_offset: [0],
    });
  });

  test('echo_last repeats the last k prompt tokens only', async () => {
    const [choice] = (await complete(worker, { prompt: [5, 6, 7], echo_last: 2, logprobs: 0, max_tokens: 1 }))
      .choices;
    expect(choice?.text).toBe('<6><7> 0');
    expect(choice?.logprobs).toMatchObject({ tokens: ['<6>', '<7>', ' 0'], text_offset: [0, 3, 6] });
  });
});

test('an echo without visible text and without logprobs sends no chunk', async () => {
  origin.script = (request, wire) => {
    wire.send(
      ...acceptedFor(request),
      ...promptEvents(request).map((event) => ({ ...event, text: '' })),
      finishOf(0, 'length', 0),
      doneFor(request, 0),
    );
    wire.end();
  };
  const chunks = await stream(worker, { prompt: [5, 6], echo: true, max_tokens: 0 });
  expect(chunks.map(({ choices }) => choices[0]?.finish_reason)).toEqual(['length']);
});

test('a stream with max_tokens 0 has one final chunk; with echo the prompt comes before it', async () => {
  const plain = await stream(worker, { max_tokens: 0 });
  expect(plain.map(({ choices }) => choices[0])).toMatchObject([{ text: '', finish_reason: 'length' }]);
  const echoed = await stream(worker, { max_tokens: 0, echo: true });
  expect(echoed.map(({ choices }) => choices[0])).toMatchObject([
    { text: 'Hi', finish_reason: null },
    { text: '', finish_reason: 'length' },
  ]);
});
