import { InvalidLogitsError, NoCandidatesError } from '../errors.ts';

/**
 * Id of the largest logit, the lowest id among equals. Every way of sampling starts here, so this is also where bad
 * rows are noticed.
 * @throws InvalidLogitsError on NaN or +∞, NoCandidatesError when all logits are −∞.
 */
export function argmax(row: Float32Array): number {
  // Read once: typed arrays may be resizable, so the engine would look it up at every step.
  const size = row.length;
  let best = -1;
  let highest = Number.NEGATIVE_INFINITY;
  for (let id = 0; id < size; id++) {
    const logit = row[id]!;
    // Written so that NaN takes the rare branch too.
    if (!(logit <= highest)) {
      if (!(logit < Number.POSITIVE_INFINITY))
        throw new InvalidLogitsError(`logit of token ${id} is ${logit}`);
      highest = logit;
      best = id;
    }
  }
  if (best < 0) throw new NoCandidatesError('no token may be sampled');
  return best;
}
