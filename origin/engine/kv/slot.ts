import type { KvCopy } from './pending-copies.ts';
import type { PromptSpan } from './prompt-match.ts';

export interface SlotAssignment {
  readonly slot: number;
  /** Positions whose KV is in the slot once all copies are made; a multiple of the chunk. */
  readonly cached: number;
  /** To be made at once, in this order. Longer ones are pending. */
  readonly copies: readonly KvCopy[];
}

/** The prompt whose first `kept` positions are in a slot. */
export interface SlotPrompt {
  readonly tokens: Int32Array;
  /** In order. */
  readonly images: readonly PromptSpan[];
  readonly namespace: string;
  readonly kept: number;
}

export interface Slot extends SlotPrompt {
  held: boolean;
  kept: number;
  /** Whether positions after the kept ones may take memory. */
  surplus: boolean;
  /** Tick of the last use; 0 = never. */
  used: number;
}

const NO_TOKENS = new Int32Array(0);

export function emptySlot(): Slot {
  return { held: false, tokens: NO_TOKENS, images: [], namespace: '', kept: 0, surplus: false, used: 0 };
}

export const leastUsed = (slots: readonly Slot[]): Slot | null =>
  slots.reduce<Slot | null>((best, slot) => (best !== null && best.used <= slot.used ? best : slot), null);
