import type { RunScores } from './token-scores.ts';

/** What is stored of one run of a prompt's prefill: of a whole chunk, or of the positions left at the prompt's end. */
export interface StoredRun extends RunScores {
  /** Its positions. */
  readonly length: number;
  readonly kv: Uint8Array;
  /**
   * Of its last position, computed without those of other positions, because some models round differently with them; null
   * if they are not stored.
   */
  readonly logits: Float32Array | null;
}

/** What a second tier has of a run. */
export interface RunContent extends Pick<StoredRun, 'kv' | 'logits'> {
  /** The bytes of its scores, without that of the token after it; null if there are none. */
  readonly scores: Uint8Array | null;
}

/** A second tier: keeps runs beyond memory and process, and finds them by their names. */
export interface RunBackup {
  /**
   * Names a run by its ids and the name of the run before it, or a namespace by its key.
   * @param before null for a namespace
   */
  name(before: string | null, key: string): string;
  /** Keeps a new run, or what is new of it. */
  keep(run: StoredRun & { readonly name: string }): void;
  /** Removes all prompts that begin with a run. */
  drop(name: string): void;
}
