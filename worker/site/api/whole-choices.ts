import type { PromptToken, StreamUpdate, Usage } from './completion-stream.ts';

export interface OffsetToken extends PromptToken {
  /** Code points from the start of the text. */
  readonly offset: number;
}

/** A text with its tokens; without any if the server sends no logprobs. */
export interface TokenizedText {
  readonly text: string;
  readonly tokens: readonly OffsetToken[];
}

export interface WholeChoice extends TokenizedText {
  /** Null until the choice ends. */
  readonly finishReason: string | null;
}

export const withOffsets = (
  tokens: readonly PromptToken[],
  offsets: readonly number[],
): readonly OffsetToken[] => tokens.map((token, index) => ({ ...token, offset: offsets[index] ?? 0 }));

/** Sums the updates of a stream to the choices so far. */
export class WholeChoices {
  readonly #choices: WholeChoice[];
  #usage: Usage | null = null;

  /** @param n number of choices */
  constructor(n: number) {
    this.#choices = Array.from({ length: n }, () => ({ text: '', tokens: [], finishReason: null }));
  }

  get choices(): readonly WholeChoice[] {
    return [...this.#choices];
  }

  /** Null until the end of the stream. */
  get usage(): Usage | null {
    return this.#usage;
  }

  add(update: StreamUpdate): void {
    if (update.type === 'usage') this.#usage = update.usage;
    if (update.type !== 'choice') return;
    const { index, text, tokens, offsets, finishReason } = update;
    const known = this.#choices[index];
    if (known === undefined) return;
    this.#choices[index] = {
      text: known.text + text,
      tokens: [...known.tokens, ...withOffsets(tokens, offsets)],
      finishReason: finishReason ?? known.finishReason,
    };
  }
}
