/** The model's logits hold NaN or +∞, so there is no distribution to draw from. The sequence cannot continue. */
export class InvalidLogitsError extends Error {
  override readonly name = 'InvalidLogitsError';
}

/** Every token is forbidden by masks, bans or −∞ logits. */
export class NoCandidatesError extends Error {
  override readonly name = 'NoCandidatesError';
}
