/** Copies of the database usually lag by less than a second. */
const PRIMARY_FOR_MS = 60_000;

/**
 * Where an isolate reads DB. Any copy may serve a read, so that isolates do not meet in the primary, and a
 * copy may lag. For a minute after a change that this isolate has made, the primary serves its reads.
 */
export class OwnChanges {
  readonly #now: () => number;
  #until = Number.NEGATIVE_INFINITY;

  /** @param now Unix milliseconds */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** Notes a change by this isolate. */
  note(): void {
    this.#until = this.#now() + PRIMARY_FOR_MS;
  }

  /** Returns the session for the next read. */
  get session(): D1SessionConstraint {
    return this.#now() < this.#until ? 'first-primary' : 'first-unconstrained';
  }
}
