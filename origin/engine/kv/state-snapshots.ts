import type { KeptState, SlotStates } from '../../model/model-runner.ts';

export type { SlotStates } from '../../model/model-runner.ts';

/** The state of a slot at a position, kept outside the cache. */
export interface Snapshot {
  readonly position: number;
  readonly state: KeptState;
}

/** Returns a snapshot of what a slot has. @throws Error if it does not have that position */
export const snapshotOf = (states: SlotStates, slot: number, position: number): Snapshot => ({
  position,
  state: states.keep(slot, position),
});

/** Snapshots of a prompt that its sequences begin from. */
export interface PromptSnapshots {
  readonly states: SlotStates;
  /** After all of its tokens. */
  readonly end: Snapshot;
  /** Before the tokens that healing may choose again; null if it chooses none. */
  readonly healed: Snapshot | null;
}

/** Tokens between two snapshots. A rewind computes at most so many again before those it takes back. */
const DISTANCE = 32;
/** The one to rewind to, and one that follows it once no earlier token can be taken back. */
const MOST = 2;

/** Snapshots of a sequence that may go back to an earlier position. */
export class StateSnapshots {
  readonly #prompt: PromptSnapshots;
  /** Of generated tokens, in order. */
  #later: Snapshot[] = [];

  constructor(prompt: PromptSnapshots) {
    this.#prompt = prompt;
  }

  /**
   * Puts the last state up to a position into a slot.
   * @param isPrompt whether the slot has the prompt's own tokens, as its prefill has computed them
   * @returns the positions after it that have to be computed again
   */
  restore(slot: number, position: number, isPrompt: boolean): number {
    this.#later = this.#later.filter((snapshot) => snapshot.position <= position);
    const { end, healed } = this.#prompt;
    const first = isPrompt || healed === null ? end : healed;
    const last = this.#later.at(-1) ?? first;
    last.state.restore(slot, last.position);
    return position - last.position;
  }

  /**
   * Keeps a snapshot of a slot if it is time.
   * @param earliest the earliest position that the sequence may go back to
   */
  keep(slot: number, position: number, earliest: number): void {
    const base = this.#later.findLastIndex((snapshot) => snapshot.position <= earliest);
    if (base > 0) this.#later.splice(0, base);
    const last = this.#later.at(-1)?.position ?? this.#prompt.end.position;
    if (position - last < DISTANCE || this.#later.length === MOST) return;
    this.#later.push(snapshotOf(this.#prompt.states, slot, position));
  }
}
