import '../support/page-globals.ts';
import { h } from 'preact';
import { expect, test } from 'vitest';
import type { WholeChoice } from '../../../../worker/site/api/whole-choices.ts';
import { Distributions } from '../../../../worker/site/compare/distributions.tsx';
import { rendered } from '../support/rendered.ts';

const sample = (finishReason: string | null, ...logprobs: readonly number[]): WholeChoice => ({
  text: 'x'.repeat(logprobs.length),
  tokens: logprobs.map((logprob, offset) => ({ name: 'x', logprob, id: null, alternatives: [], offset })),
  finishReason,
});

const rows = (left: readonly WholeChoice[], right: readonly WholeChoice[]) =>
  rendered(h(Distributions, { sides: [left, right] }))
    .all('tr')
    .map(({ childNodes }) => childNodes.map(({ textContent }) => textContent))
    .filter(([name]) => name !== 'Side');

test('the tables have the lengths and log-likelihoods of the finished samples of each side', () => {
  const left = [sample('length', -1, -2), sample('stop', -1), sample('stop', -0.5, -0.5, -1)];
  const right = [sample('length', -4), sample(null, -9, -9)];
  expect(rows(left, right)).toEqual([
    ['A', '3', '2.0', '1.0', '2.0'],
    ['B', '1', '1.0', '0.0', '1.0'],
    ['A', '3', '−2.0', '1.0', '−2.0'],
    ['B', '1', '−4.0', '0.0', '−4.0'],
  ]);
});

test('one finished sample a side has no distribution', () => {
  expect(rows([sample('stop', -1), sample(null, -1)], [sample('stop', -1)])).toEqual([]);
});
