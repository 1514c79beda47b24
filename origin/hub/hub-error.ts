/** A fault the user can act on; the message is one line. */
export class HubError extends Error {
  override readonly name = 'HubError';
}

/** A fault that may be gone at the next attempt: a lost connection, a busy server. */
export class TransientError extends Error {
  override readonly name = 'TransientError';
  /** How long the server asks to be left alone; null = it did not say. */
  readonly retryAfterMs: number | null;

  constructor(message: string, retryAfterMs: number | null = null) {
    super(message);
    this.retryAfterMs = retryAfterMs;
  }
}
