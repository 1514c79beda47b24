import { expect, test } from 'vitest';
import { readLines } from '../../../../worker/site/score/score-lines.ts';

test('lines keep their numbers, empty ones are skipped, and each wrong one says why', () => {
  const text = [
    '\uFEFF{"prompt": "a", "choices": ["b", "c"], "answer": 1}',
    '',
    '{"prompt": "", "choices": ["b"]}\r',
    'no json',
    '[]',
    '{"choices": ["b"]}',
    '{"prompt": "a", "choices": []}',
    '{"prompt": "a", "choices": ["b", ""]}',
    '{"prompt": "a", "choices": ["b"], "answer": 1}',
  ].join('\n');
  const { lines, faults } = readLines(text);
  expect(lines).toEqual([
    { number: 1, prompt: 'a', choices: ['b', 'c'], answer: 1 },
    { number: 3, prompt: '', choices: ['b'], answer: null },
  ]);
  expect(faults.map(({ number, fault }) => `${number}: ${fault}`)).toEqual([
    expect.stringMatching(/^4: This is no JSON: /),
    '5: Expected an object with prompt and choices.',
    '6: prompt must be a text.',
    '7: choices must be a list of 1 to 256 texts.',
    '8: choices[1] must be a text that is not empty.',
    '9: answer must be an index from 0 to 0, but is 1.',
  ]);
});
