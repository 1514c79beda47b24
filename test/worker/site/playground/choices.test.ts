import { expect, test, vi } from 'vitest';
import '../support/page-globals.ts';
import type { WholeChoice } from '../../../../worker/site/api/whole-choices.ts';
import { ChoiceCollector, placedChoice, takenOf } from '../../../../worker/site/playground/choices.ts';
import { choice } from '../tree/random-tree.ts';

const offered = (...texts: readonly string[]) => ({
  run: 'r',
  text: 'ab',
  position: 1,
  choices: texts.map((text): WholeChoice => ({ ...choice([text]), finishReason: 'stop' })),
});

test('the taken choice is the one that the text has at its place, and another change is seen', () => {
  const two = offered('XX', 'Y');
  expect(takenOf(two, 'ab')).toEqual({ index: null, length: 0 });
  expect(takenOf(two, 'aXXb')).toEqual({ index: 0, length: 2 });
  expect(takenOf(two, 'aYb')).toEqual({ index: 1, length: 1 });
  expect(takenOf(two, 'abc')).toBeNull();
  expect(placedChoice(two, 0)).toMatchObject([{ from: 1, to: 3, run: 'r' }]);
});

test('the echo of the prompt is in no choice, and tokens are placed in the text of their choice', async () => {
  vi.stubGlobal('window', { setTimeout, clearTimeout });
  const shown: (readonly WholeChoice[])[] = [];
  const collector = new ChoiceCollector(2, true, (choices) => shown.push(choices));
  const update = (index: number, text: string, offset: number) => ({
    ...({ type: 'choice', index, text, promptIds: null, finishReason: null, stopReason: null } as const),
    tokens: [{ name: text, logprob: -1, id: null, alternatives: [] }],
    offsets: [offset],
  });
  for (const [index, text, offset] of [
    [0, '🙂b', 0],
    [0, ' one', 2],
    [1, '🙂b', 0],
    [1, ' two', 2],
    [1, '!', 6],
  ] as const)
    collector.add(update(index, text, offset));
  await collector.end();
  const [first, second] = shown.at(-1)!;
  expect([first!.text, second!.text]).toEqual([' one', ' two!']);
  expect(second!.tokens.map(({ offset }) => offset)).toEqual([0, 4]);
});
