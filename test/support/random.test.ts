import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { testFiles } from './groups.ts';
import { mulberry32, randomFrom, TEST_SEED } from './random.ts';

test('property tests use the seed of the run', () => {
  expect(fc.readConfigureGlobal()).toMatchObject({ seed: TEST_SEED });
  const sample = () => fc.sample(fc.integer(), 5);
  expect(sample()).toEqual(sample());
});

test('a stream repeats its numbers, and two streams differ', () => {
  const numbers = (random: () => number) => Array.from({ length: 5 }, random);
  expect(numbers(randomFrom(1))).toEqual(numbers(randomFrom(1)));
  expect(numbers(randomFrom(1))).not.toEqual(numbers(randomFrom(2)));
  expect(numbers(randomFrom(1))).toEqual(numbers(mulberry32(TEST_SEED + 1)));
});

test('no test draws numbers that cannot be repeated', () => {
  const unrepeatable = /\bMath\.random\b|\bgetRandomValues\b|\brandomInt\b/;
  expect(testFiles().filter((file) => unrepeatable.test(readFileSync(file, 'utf8')))).toEqual([]);
});
