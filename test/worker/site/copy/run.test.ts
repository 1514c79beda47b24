import { expect, test } from 'vitest';
import { type Run, RunRecorder, repeatRun, verdictOf } from '../../../../worker/site/copy/run.ts';
import { CONNECTION, completion, serveCompletions } from '../support/fake-completions.ts';

const run = (more: Partial<Run> = {}): Run => ({
  ...new RunRecorder({
    key: '1',
    at: 0,
    dialect: 'vllm',
    body: { model: 'default', prompt: 'Once', seed: 7 },
  }).end(true),
  fingerprint: 'fp_1',
  texts: [' upon a time'],
  ...more,
});

test('a run is repeated with the body and the dialect as they were sent', async () => {
  const sent = serveCompletions(() =>
    completion({ text: ' upon' }, { text: ' a time', finish_reason: 'stop' }),
  );
  const again = await repeatRun({ ...CONNECTION, dialect: 'openai' }, run(), new AbortController().signal);
  expect(sent[0]!.body).toEqual(run().body);
  expect(sent[0]!.body).toMatchObject({ seed: 7, stream: true });
  expect(sent[0]!.dialect).toBe('vllm');
  expect(again.texts).toEqual([' upon a time']);
});

test.each([
  ['The text is equal.', run(), run()],
  ['The text differs from character 7.', run(), run({ texts: [' upon 🙂 time'] })],
  ['The text differs from character 6.', run(), run({ texts: [' upon'] })],
  [
    'The text differs from character 2 of choice 2.',
    run({ texts: ['a', 'bc'] }),
    run({ texts: ['a', 'bd'] }),
  ],
  [
    'The run had no end. The repeated text begins with what it gave.',
    run({ texts: [' upon'], isWhole: false }),
    run(),
  ],
  ['The text differs from character 1.', run({ texts: ['x'], isWhole: false }), run()],
  [
    'The text is equal. The model or its settings have changed: the fingerprint was fp_1, and is fp_2.',
    run(),
    run({ fingerprint: 'fp_2' }),
  ],
])('"%s"', (verdict, first, again) => {
  expect(verdictOf(first, again)).toBe(verdict);
});
