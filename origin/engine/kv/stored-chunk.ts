import type { ChunkLogprobs } from './prompt-logprobs.ts';

/** What is stored of one chunk of a prompt's prefill: whole, or the rest at the prompt's end. */
export interface StoredChunk extends ChunkLogprobs {
  /** Its positions. */
  readonly length: number;
  readonly kv: Uint8Array;
  /**
   * Of its last position, computed without those of other positions, because some models round differently
   * with them; null if they are not stored.
   */
  readonly logits: Float32Array | null;
  /** The state of a slot after it; null if it is not stored, or if the model has none. */
  readonly state: Uint8Array | null;
  /** False once it was evicted. */
  readonly stored: boolean;
}

/** What a second tier has of a chunk. */
export interface ChunkContent extends Pick<StoredChunk, 'kv' | 'logits'> {
  /** The bytes of its logprobs, without that of the token after it; null if there are none. */
  readonly logprobs: Uint8Array | null;
}

/** A second tier: keeps chunks beyond memory and process, and finds them by their names. */
export interface ChunkBackup {
  /**
   * Names a chunk.
   * @param before the name of the chunk before it; null for the first one of a prompt
   * @param ids its token ids, as text
   */
  name(namespace: string, before: string | null, ids: string): string;
  /** Keeps a new chunk, or what is new of it. */
  keep(chunk: StoredChunk & { readonly name: string }): void;
  /** Removes all prompts that begin with a chunk. */
  drop(name: string): void;
}
