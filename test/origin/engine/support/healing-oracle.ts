import { bytesOf, type TokenBytes } from '../../../../origin/tokenizer/token-bytes.ts';

/** Key of a text that ends with the prompt's last byte, or of a token without text. */
export const NO_BYTE = -1;

/** Probabilities by next byte. */
export type NextBytes = ReadonlyMap<number, number>;

function softmax(row: Float32Array): Float64Array {
  const max = row.reduce((most, logit) => Math.max(most, logit), Number.NEGATIVE_INFINITY);
  const weights = Float64Array.from(row, (logit) => Math.exp(logit - max));
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  return weights.map((weight) => weight / total);
}

const textOf = (tokenBytes: TokenBytes, id: number): string =>
  tokenBytes.special[id] === 1 ? '' : String.fromCharCode(...bytesOf(tokenBytes, id));

/**
 * The distribution of the byte after a prompt, by enumeration of every token at each of the last positions. A
 * token counts if its text covers the rest of the prompt, with the probability of the prompt's tokens before
 * it times its promptId.
 * @param rowAt the model's logits after the first n tokens of the prompt
 */
export function enumerateNextBytes(
  tokens: Int32Array,
  lookback: number,
  rowAt: (length: number) => Float32Array,
  tokenBytes: TokenBytes,
): NextBytes {
  const masses = new Map<number, number>();
  let prefix = 1;
  let total = 0;
  for (let at = Math.max(1, tokens.length - lookback); at <= tokens.length; at++) {
    const probabilities = softmax(rowAt(at));
    const rest = [...tokens.subarray(at)].map((id) => textOf(tokenBytes, id)).join('');
    probabilities.forEach((probability, id) => {
      const text = textOf(tokenBytes, id);
      // The prompt's own token leads to the next position.
      if (at < tokens.length && (!text.startsWith(rest) || id === tokens[at])) return;
      const next = text.length > rest.length ? text.charCodeAt(rest.length) : NO_BYTE;
      masses.set(next, (masses.get(next) ?? 0) + prefix * probability);
      total += prefix * probability;
    });
    if (at < tokens.length) prefix *= probabilities[tokens[at]!]!;
  }
  return new Map([...masses].map(([byte, mass]) => [byte, mass / total]));
}

interface Step {
  readonly promptId: number;
  readonly conditioned: Float32Array;
  readonly mask: Uint32Array;
  readonly rest: Uint8Array;
}

/** The distribution of the byte after a prompt if tokens are drawn from the steps, then from the last row. */
export function nextBytesOf(steps: readonly Step[], last: Float32Array, tokenBytes: TokenBytes): NextBytes {
  const masses = new Map<number, number>();
  const add = (id: number, skip: number, mass: number) => {
    const text = textOf(tokenBytes, id);
    const next = text.length > skip ? text.charCodeAt(skip) : NO_BYTE;
    masses.set(next, (masses.get(next) ?? 0) + mass);
  };
  let reached = 1;
  for (const { promptId, conditioned, mask, rest } of steps) {
    const isAllowed = (id: number) => ((mask[id >>> 5]! >>> (id & 31)) & 1) === 1;
    const probabilities = softmax(
      conditioned.map((logit, id) => (isAllowed(id) ? logit : Number.NEGATIVE_INFINITY)),
    );
    probabilities.forEach((probability, id) => {
      if (id !== promptId && probability > 0) add(id, rest.length, reached * probability);
    });
    reached *= probabilities[promptId]!;
  }
  softmax(last).forEach((probability, id) => {
    add(id, 0, reached * probability);
  });
  return masses;
}
