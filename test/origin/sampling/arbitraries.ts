import fc from 'fast-check';
import { NEUTRAL_SAMPLING, type SamplingParameters } from '../../../shared/sampling.ts';
import { bitsOf } from './one-token.ts';

/**
 * Logits with many ties, with none, and with forbidden ones among them; at least one is finite. None differ
 * by less than 2^-14: differences that vanish in a float64 probability would be ties to one implementation
 * only.
 */
export function anyLogits(size: number): fc.Arbitrary<number[]> {
  const tied = fc.integer({ min: -8, max: 8 }).map((step) => step / 2);
  const spread = fc.double({ min: -15, max: 15, noNaN: true }).map((z) => Math.round(z * 2 ** 14) / 2 ** 14);
  const forbidden = fc.constant(-Infinity);
  const one = fc.oneof(
    { arbitrary: tied, weight: 5 },
    { arbitrary: spread, weight: 5 },
    { arbitrary: forbidden, weight: 1 },
  );
  return fc
    .tuple(fc.array(one, { minLength: size, maxLength: size }), fc.nat(size - 1), spread)
    .map(([logits, id, logit]) => logits.with(id, logit));
}

export function anyHistory(size: number, maxLength: number): fc.Arbitrary<number[]> {
  return fc.array(fc.nat(size - 1), { maxLength });
}

/** The bit set of a few ids, or of all but a few. */
export function anyMask(size: number): fc.Arbitrary<Uint32Array> {
  const few = fc.array(fc.nat(size - 1), { minLength: 1, maxLength: 40 });
  return fc.tuple(few, fc.boolean()).map(([ids, areOut]) => {
    const bits = bitsOf(ids, size);
    return areOut ? bits.map((word) => ~word) : bits;
  });
}

/** A share on a grid (where boundaries are met) or anywhere. */
const share = fc.oneof(
  fc.constantFrom(0, 0.25, 0.5, 0.75, 0.9, 0.95, 0.999, 1),
  fc.double({ min: 0, max: 1, noNaN: true }),
);
const small = fc.double({ min: 0, max: 0.6, noNaN: true });

const truncating = fc.record({
  topK: fc.integer({ min: 0, max: 40 }),
  topP: share,
  minP: fc.oneof(share, small),
  typicalP: share,
  topNSigma: fc.oneof(fc.constant(-1), fc.double({ min: 0.1, max: 3, noNaN: true })),
  xtcProbability: share,
  xtcThreshold: small,
  minKeep: fc.integer({ min: 0, max: 6 }),
  dynatempRange: fc.double({ min: 0, max: 1.5, noNaN: true }),
  dynatempExponent: fc.constantFrom(0.5, 1, 2),
});

const penalising = fc.record({
  repetitionPenalty: fc.constantFrom(1e-300, 0.5, 1.1, 1.5, 2),
  frequencyPenalty: fc.constantFrom(-1, 0.3, 2),
  presencePenalty: fc.constantFrom(-2, 0.25, 1),
  repeatLastN: fc.integer({ min: -1, max: 12 }),
  penaltyScope: fc.constantFrom('generated' as const, 'all' as const),
  dryMultiplier: fc.constantFrom(0, 0.8, 1),
  dryBase: fc.constantFrom(1, 1.1, 1.75),
  dryAllowedLength: fc.integer({ min: 0, max: 4 }),
  dryPenaltyLastN: fc.integer({ min: -1, max: 20 }),
});

/** Some of these switched on, the others neutral. */
function someOf(values: Partial<SamplingParameters>): fc.Arbitrary<Partial<SamplingParameters>> {
  return fc
    .subarray(Object.keys(values) as (keyof SamplingParameters)[])
    .map((keys) => Object.fromEntries(keys.map((key) => [key, values[key]])));
}

/** Random combinations of all samplers except Mirostat, without breakers and bad words. */
export function anyParameters(size: number): fc.Arbitrary<SamplingParameters> {
  // Often several of one token.
  const biased = fc.oneof(fc.nat(size - 1), fc.nat(Math.min(2, size - 1)));
  const restricting = fc.record({
    logitBias: fc.array(fc.tuple(biased, fc.option(fc.integer({ min: -5, max: 5 }))), { maxLength: 4 }),
    allowedTokenIds: fc.option(fc.array(fc.nat(size - 1), { minLength: 1, maxLength: 20 })),
  });
  return fc
    .tuple(
      fc.constantFrom(0, 0.3, 0.7, 1, 1, 1.3, 2),
      truncating.chain(someOf),
      penalising.chain(someOf),
      restricting.chain(someOf),
    )
    .map(([temperature, ...parts]) =>
      Object.assign({}, NEUTRAL_SAMPLING, { temperature, drySequenceBreakers: [] }, ...parts),
    );
}
