import { expect, it } from 'vitest';
import { oncePerCause } from '../../../origin/serving/load-model.ts';

it('faults are logged once per cause, whatever numbers they contain, and at most 32 causes', () => {
  const lines: string[] = [];
  const log = oncePerCause((line) => lines.push(line));
  for (const message of ['MatMul of {3,1}', 'MatMul of {4,17}', 'CUDA failure 2: out of memory'])
    log(message);
  log('MatMul of {5,1}');
  expect(lines).toEqual(['MatMul of {3,1}', 'CUDA failure 2: out of memory']);
  for (let cause = 0; cause < 100; cause++) log('x'.repeat(cause + 1));
  expect(lines).toHaveLength(32);
});
