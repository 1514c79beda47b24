import { expect, it } from 'vitest';
import { sparseFault } from '../../../../../origin/model/runner/device/check-sparse.ts';
import { SparseLogits } from '../../../../../origin/model/sparse-logits.ts';
import { mulberry32 } from '../../../../support/random.ts';
import { SparseDevice } from '../../../sampling/sparse-device.ts';

const [ROWS, VOCABULARY] = [5, 1000];

/** A device, and a function that computes the same batch each time. `spoil` changes what it has written. */
function setup(spoil: (device: SparseDevice) => void) {
  const memory = new Float32Array(SparseLogits.length(ROWS, VOCABULARY));
  const device = new SparseDevice(memory, ROWS, VOCABULARY);
  const random = mulberry32(3);
  const rows = Array.from({ length: ROWS }, () =>
    Float32Array.from({ length: VOCABULARY }, () => 20 * random() - 10),
  );
  const run = (coldness?: readonly (number | null)[]) => {
    device.logits.clear();
    for (const [index, row] of rows.entries()) {
      const ofRow = coldness?.[index] ?? null;
      if (ofRow === null) device.rowAt(index).set(row);
      else device.keep(index, row, ofRow);
    }
    if (coldness !== undefined) spoil(device);
    return memory.subarray(0, ROWS * VOCABULARY);
  };
  return { device, run };
}

const known = (device: SparseDevice, row: number) => device.logits.of(device.rowAt(row))!;

it.each<readonly [string, (device: SparseDevice) => void, string | null]>([
  ['a right device', () => {}, null],
  [
    'a wrong maximum',
    (device) => (known(device, 1).statistics.maxima[3]! += 1),
    'row 1 of 5: block 3 has another maximum',
  ],
  [
    'a wrong sum',
    (device) => (known(device, 2).statistics.sums[7]! *= 1.001),
    'row 2 of 5: block 7 has another sum',
  ],
  [
    'a wrong sum at the temperature',
    (device) => known(device, 0).statistics.coldSums.fill(0, 4, 5),
    'row 0 of 5: block 4 has another sum',
  ],
  [
    'a whole row that is another',
    (device) => (device.rowAt(4)[999]! += 1),
    'row 4 of 5: other logits than those of a whole row',
  ],
  ['a block that was not brought', (device) => device.rowAt(0).fill(Number.NaN), 'is here or not by mistake'],
])('%s is found before the first request', (_, spoil, fault) => {
  const { device, run } = setup(spoil);
  const found = sparseFault(device, run);
  if (fault === null) expect(found).toBeNull();
  else expect(found).toContain(fault);
});

it('a device that brings other blocks than those asked for is found', () => {
  const { device, run } = setup(() => {});
  device.fetchWanted = () => device.logits.listWanted() > 0;
  expect(sparseFault(device, run)).toContain('was not brought');
  device.fetchWanted = () => false;
  expect(sparseFault(device, run)).toContain('no block was brought');
});
