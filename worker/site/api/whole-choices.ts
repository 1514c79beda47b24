import type { Connection } from './client.ts';
import { type PromptToken, type StreamUpdate, streamCompletion, type Usage } from './completion-stream.ts';
import { failureFrom, type RequestFailure } from './request-failure.ts';
import type { Parameters } from './request-field.ts';

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
    const choice = this.#choices[index];
    if (choice === undefined) return;
    this.#choices[index] = {
      text: choice.text + text,
      tokens: [...choice.tokens, ...withOffsets(tokens, offsets)],
      finishReason: finishReason ?? choice.finishReason,
    };
  }
}

/** Time between two views of choices that arrive, in milliseconds: faster figures cannot be read. */
const UPDATE_MS = 100;
/** What tints and alternatives need: as many alternatives as every dialect allows, and their ids. */
export const TOKEN_FIELDS: Parameters = { logprobs: 5, return_token_ids: true };

/**
 * Requests n choices and shows them as they arrive.
 * @param show called every 100 ms with the choices so far, and at the end
 * @returns why it failed; null if it is complete or was aborted
 */
export async function requestChoices(
  connection: Connection,
  body: { readonly n: number; readonly [field: string]: unknown },
  signal: AbortSignal,
  show: (arrived: WholeChoices) => void,
): Promise<RequestFailure | null> {
  const arrived = new WholeChoices(body.n);
  const timer = setInterval(() => show(arrived), UPDATE_MS);
  try {
    for await (const update of streamCompletion(connection, body, signal)) arrived.add(update);
    return null;
  } catch (thrown) {
    if (signal.aborted) return null;
    return failureFrom(thrown);
  } finally {
    clearInterval(timer);
    show(arrived);
  }
}
