import '../support/page-globals.ts';
import { signal } from '@preact/signals';
import { h } from 'preact';
import { expect, test } from 'vitest';
import type { CompareState } from '../../../../worker/site/compare/compare-state.ts';
import { Side } from '../../../../worker/site/compare/comparison.ts';
import { Completions } from '../../../../worker/site/compare/completions.tsx';
import { tokenDifferences } from '../../../../worker/site/compare/token-differences.ts';
import { type Session, SessionContext } from '../../../../worker/site/store/session.ts';
import { waitFor } from '../../../support/wait-for.ts';
import { rendered } from '../support/rendered.ts';
import { choice } from '../tree/random-tree.ts';

/** The answers of both sides: the tokens of each sample. */
function shown(...samples: readonly (readonly (readonly string[])[])[]) {
  const sides = samples.map((tokens) => {
    const side = new Side();
    side.result.value = {
      samples: tokens.map((names) => ({ ...choice(names), finishReason: 'stop' })),
      usage: null,
      running: false,
      failure: null,
    };
    return side;
  });
  const session = {
    display: signal({ tint: 'background', whiteSpace: false }),
    carried: signal(null),
  } as unknown as Session;
  const state = {
    session,
    sides,
    sample: signal(0),
    asked: signal([
      { text: '', tokens: [] },
      { text: '', tokens: [] },
    ]),
  } as unknown as CompareState;
  const page = rendered(h(SessionContext.Provider, { value: session }, h(Completions, { state })));
  const options = (index: number) =>
    [
      ...page
        .all('section')
        .filter(({ attributes }) => attributes.get('class') === 'answer framed')
        [index]!.elements(),
    ].filter(({ attributes }) => attributes.get('role') === 'option');
  return { page, options };
}

const isMarked = (option: ReturnType<ReturnType<typeof shown>['options']>[number]) =>
  /\bmarked\b/.test(option.lastElementChild!.attributes.get('class')!);

test('exactly the tokens that differ are marked, and the first of them is named', () => {
  const left = ['The', ' king', ' had', ' a', ' horse', '.'];
  const right = ['The', ' king', ' saw', ' a', ' big', ' horse', '.'];
  const { page, options } = shown([left], [right]);
  const differences = tokenDifferences(left, right);
  for (const [index, tokens, marks] of [
    [0, left, differences.left],
    [1, right, differences.right],
  ] as const) {
    expect(options(index).map(({ textContent }) => textContent)).toEqual(tokens);
    expect(options(index).map(isMarked)).toEqual(marks);
  }
  expect(differences.first).toBe(2);
  expect(page.text()).toContain('5 tokens in common, of 6 and 7. The first difference is token 3.');
});

test('the alternatives are those of the shown sample', async () => {
  const { page, options } = shown([['One'], ['Two']], [['One'], ['Two']]);
  const list = page.all('span').filter(({ attributes }) => attributes.get('role') === 'listbox')[1]!;
  const heads = () =>
    page
      .all('p', 'One')
      .concat(page.all('p', 'Two'))
      .map(({ textContent }) => textContent);
  list.dispatch('keydown', { key: 'ArrowRight' });
  await waitFor(() => expect(heads()).toEqual(['One4f 6e 65']));
  page.press('Next');
  await waitFor(() => expect(heads()).toEqual(['Two54 77 6f']));
  expect(options(1).map(({ textContent }) => textContent)).toEqual(['Two']);
});
