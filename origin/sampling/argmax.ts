/** The model's logits hold NaN or +∞: there is nothing to draw from. The sequence cannot continue. */
export class InvalidLogitsError extends Error {
  override readonly name = 'InvalidLogitsError';
}

/** Every token is forbidden by masks, bans or −∞ logits. */
export class NoCandidatesError extends Error {
  override readonly name = 'NoCandidatesError';
}

/**
 * Id of the largest logit, the lowest id among equals. `Row.begin` does the same faster.
 * @throws InvalidLogitsError on NaN or +∞, NoCandidatesError if all logits are −∞
 */
export function argmax(row: Float32Array): number {
  // Read once: JavaScript engines read the length of a typed array at every step otherwise.
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
