import '../support/page-globals.ts';
import { signal } from '@preact/signals';
import { beforeEach, expect, test } from 'vitest';
import {
  type CompareState,
  compare,
  EXAMPLES,
  scoreText,
} from '../../../../worker/site/compare/compare-state.ts';
import { Side } from '../../../../worker/site/compare/comparison.ts';
import { waitFor } from '../../../support/wait-for.ts';
import { CONNECTION, completion, serveCompletions } from '../support/fake-completions.ts';
import { stubDocument } from '../support/stub-document.ts';

beforeEach(() => stubDocument());

test('each side is requested in its own dialect, and the retry of one leaves the other as it is', async () => {
  const error = { message: 'Busy.', type: 'server_error', param: null, code: 'server_is_overloaded' };
  const sent = serveCompletions(({ dialect }, at) =>
    dialect === 'llamacpp' && at < 2
      ? Response.json({ error }, { status: 503 })
      : completion({ text: `of request ${at}`, finish_reason: 'stop' }),
  );
  const { settings } = EXAMPLES.find(({ title }) => title === 'Two dialects')!;
  const sides = [new Side(), new Side()] as const;
  const state = {
    session: { connection: signal(CONNECTION) },
    settings: signal(settings),
    sides,
    sample: signal(3),
    asked: signal([
      { text: '', tokens: [] },
      { text: '', tokens: [] },
    ]),
  } as unknown as CompareState;
  const untilEnded = () =>
    waitFor(() => expect(sides.map(({ result }) => result.peek().running)).toEqual([false, false]));
  const shown = () =>
    sides.map(({ result }) => {
      const { samples, failure } = result.peek();
      return [...samples.map(({ text }) => text), failure?.kind ?? 'no failure'];
    });

  compare(state);
  await untilEnded();
  expect(sent.map(({ dialect }) => dialect)).toEqual(['openai', 'llamacpp']);
  expect([state.sample.peek(), state.asked.peek()[0].text]).toEqual([0, settings.prompt]);
  expect(shown()).toEqual([['of request 0', 'no failure'], ['overloaded']]);
  compare(state, sides[1]);
  await untilEnded();
  expect(sent.map(({ dialect }) => dialect)).toEqual(['openai', 'llamacpp', 'llamacpp']);
  expect(shown()).toEqual([
    ['of request 0', 'no failure'],
    ['of request 2', 'no failure'],
  ]);
});

test('two prompts go to one side each, and a given text goes to both models and generates nothing', async () => {
  const sent = serveCompletions(() => completion({ text: '', finish_reason: 'stop' }));
  const { settings } = EXAMPLES[1]!;
  const state = {
    session: { connection: signal(CONNECTION) },
    settings: signal({ ...settings, prompt: 'Given', prompts: ['One', 'Two'] }),
    sides: [new Side(), new Side()],
    scored: [new Side(), new Side()],
    scoredText: signal(''),
    sample: signal(0),
    asked: signal([]),
  } as unknown as CompareState;
  compare(state);
  await waitFor(() => expect(sent.map(({ body }) => body.prompt)).toEqual(['One', 'Two']));
  expect(state.asked.peek().map(({ text }) => text)).toEqual(['One', 'Two']);
  scoreText(state);
  await waitFor(() => expect(sent).toHaveLength(4));
  for (const { body } of sent.slice(2))
    expect(body).toMatchObject({ prompt: 'Given', max_tokens: 0, echo: true, logprobs: 5, n: 1 });
});
