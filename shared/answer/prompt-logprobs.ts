import type { TokenLogprob } from '../generation.ts';
import { shownLogprob } from './float32.ts';
import { tokenText } from './token-text.ts';

/** One candidate at one place of the prompt. */
interface Candidate {
  readonly logprob: number;
  /** 1 = most likely; null when it is not among the alternatives asked for. */
  readonly rank: number | null;
  readonly decoded_token: string;
}

export type PromptLogprobs = readonly (Readonly<Record<string, Candidate>> | null)[];

/** The prompt's tokens as a list of {id: candidate}: the best N and the token itself, null for the first token. */
export function promptLogprobs(tokens: readonly TokenLogprob[], alternatives: number): PromptLogprobs {
  return tokens.map((token) => {
    if (token.logprob === null) return null;
    const best = (token.top ?? []).slice(0, alternatives);
    const entries = best.map(([id, bytes, logprob], index): [string, Candidate] => [
      String(id),
      { logprob: shownLogprob(logprob), rank: index + 1, decoded_token: tokenText(bytes) },
    ]);
    if (!best.some(([id]) => id === token.id)) {
      const own = { logprob: shownLogprob(token.logprob), rank: null, decoded_token: tokenText(token.bytes) };
      entries.push([String(token.id), own]);
    }
    return Object.fromEntries(entries);
  });
}
