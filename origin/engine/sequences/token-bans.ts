interface TokenBan {
  readonly id: number;
  readonly position: number;
  readonly first: boolean;
}

const NONE: readonly number[] = [];

/** Tokens that would begin a banned phrase, at the places that a sequence has returned to. */
export class TokenBans {
  #bans: readonly TokenBan[] = [];

  /**
   * Bans a token from a place. Bans of later places depended on it and are dropped.
   * @param first the token is the first of the sequence, which healing may put at one of several positions
   */
  add(id: number, position: number, first: boolean): void {
    const kept = this.#bans.filter((ban) => ban.first || (!first && ban.position <= position));
    this.#bans = [...kept, { id, position, first }];
  }

  at(position: number, first: boolean): readonly number[] {
    if (this.#bans.length === 0) return NONE;
    const bans = this.#bans.filter((ban) => ban.position === position && ban.first === first);
    return bans.map(({ id }) => id);
  }
}
