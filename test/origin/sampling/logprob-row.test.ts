import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { SimdKernel } from '../../../origin/sampling/kernel/simd-kernel.ts';
import { logprobRow } from '../../../origin/sampling/logprob-row.ts';
import { tokenLogprob } from '../../../origin/sampling/logprobs.ts';
import { SamplerWorkspace } from '../../../origin/sampling/workspace.ts';
import { LOWEST_LOGPROB, type LogprobRowFormat } from '../../../shared/logprob.ts';
import { randomFrom } from '../../support/random.ts';

const KERNEL = new SimdKernel();

/** Probabilities that are closer count as equal where the set of the most likely tokens ends. */
const RESOLUTION = 2 ** -19;

const bytesOf = (base64: string) => Uint8Array.from(Buffer.from(base64, 'base64')).buffer;

function float16(bits: number): number {
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1_023;
  const size =
    exponent === 31
      ? Number.POSITIVE_INFINITY
      : exponent === 0
        ? fraction * 2 ** -24
        : (1 + fraction / 1_024) * 2 ** (exponent - 15);
  return bits & 0x8000 ? -size : size;
}

function decoded(logits: Float32Array, format: LogprobRowFormat): { ids: number[]; logprobs: number[] } {
  const workspace = new SamplerWorkspace(logits.length, KERNEL);
  const { logprobs, ids } = logprobRow(logits, format, workspace);
  const values =
    format.encoding === 'float32'
      ? [...new Float32Array(bytesOf(logprobs))]
      : Array.from(new Uint16Array(bytesOf(logprobs)), float16);
  return {
    logprobs: values,
    ids: ids === undefined ? values.map((_, id) => id) : [...new Int32Array(bytesOf(ids))],
  };
}

/** The log-softmax in doubles. */
function plain(logits: Float32Array): number[] {
  const top = Math.max(...logits);
  const normalizer = top + Math.log(logits.reduce((sum, logit) => sum + Math.exp(logit - top), 0));
  return Array.from(logits, (logit) => logit - normalizer);
}

const rows = fc
  .tuple(fc.nat(), fc.constantFrom(3, 128, 500, 40_000), fc.constantFrom(0, 1, 6))
  .map(([seed, size, spread]) => {
    const random = randomFrom(seed);
    const row = Float32Array.from(
      { length: size },
      () => spread * (random() + random() + random() - 1.5) * 4,
    );
    if (seed % 3 === 0) row[seed % size] = Number.NEGATIVE_INFINITY;
    return row;
  });

test('a row has the log-softmax of every token, and its probabilities sum to 1', () => {
  fc.assert(
    fc.property(rows, (logits) => {
      const { ids, logprobs } = decoded(logits, { encoding: 'float32' });
      const expected = plain(logits);
      expect(ids).toEqual(expected.map((_, id) => id));
      const far = expected.filter((value, id) =>
        value === Number.NEGATIVE_INFINITY ? logprobs[id] !== value : Math.abs(logprobs[id]! - value) > 1e-5,
      );
      expect(far).toEqual([]);
      expect(logprobs.reduce((sum, value) => sum + Math.exp(value), 0)).toBeCloseTo(1, 5);
    }),
    { numRuns: 25 },
  );
});

test('a row has the values of the most likely tokens bit for bit, and float16 rounds them', () => {
  fc.assert(
    fc.property(rows, (logits) => {
      const { top } = tokenLogprob(logits, 0, 20, new SamplerWorkspace(logits.length, KERNEL));
      const { logprobs } = decoded(logits, { encoding: 'float32' });
      const half = decoded(logits, { encoding: 'float16' }).logprobs;
      for (const [id, value] of top) {
        expect(Math.max(LOWEST_LOGPROB, logprobs[id]!)).toBe(value);
        if (value > LOWEST_LOGPROB)
          expect(Math.abs(half[id]! - value)).toBeLessThanOrEqual(-value * 2 ** -11 + 2 ** -25);
      }
    }),
    { numRuns: 25 },
  );
});

test('top_p leaves the smallest set of tokens with that probability', () => {
  fc.assert(
    fc.property(rows, fc.constantFrom(0.001, 0.3, 0.9, 0.999), (logits, topP) => {
      const { ids, logprobs } = decoded(logits, { encoding: 'float32', topP });
      const whole = decoded(logits, { encoding: 'float32' }).logprobs;
      const expected = plain(logits);
      expect(logprobs).toEqual(ids.map((id) => whole[id]));
      expect(ids).toEqual([...new Set(ids)].sort((one, other) => one - other));
      const least = Math.min(...logprobs);
      expect(whole.every((value, id) => value <= least || ids.includes(id))).toBe(true);
      const mass = ids.reduce((sum, id) => sum + Math.exp(expected[id]!), 0);
      expect(mass).toBeGreaterThanOrEqual(topP - RESOLUTION);
      expect(mass - Math.exp(least)).toBeLessThan(topP + RESOLUTION);
    }),
    { numRuns: 25 },
  );
});
