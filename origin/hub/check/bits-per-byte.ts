import type { ModelRunner } from '../../model/model-runner.ts';
import { bytesOf } from '../../tokenizer/token-bytes.ts';
import type { Tokenizer } from '../../tokenizer/tokenizer.ts';
import { HubError } from '../fetch/hub-error.ts';

const NEVER = new AbortController().signal;
/** Positions that a token can look back on at most. */
const WINDOW = 1024;

export interface TextLikelihood {
  /** −log2 of the text's probability, divided by its bytes. */
  readonly bitsPerByte: number;
  readonly bytes: number;
  readonly tokens: number;
}

/**
 * Measures how well a model predicts a text, in windows that follow one another. The first token of a window
 * is predicted if the tokenizer begins texts with a special token, else it is only read.
 * @throws HubError if the text has no token to predict
 */
export async function measureText(
  runner: ModelRunner,
  tokenizer: Tokenizer,
  text: string,
): Promise<TextLikelihood> {
  const ids = tokenizer.encode(text, { addSpecialTokens: false, parseSpecial: false });
  const begin = tokenizer.encode('', { addSpecialTokens: true, parseSpecial: false });
  const window = Math.min(WINDOW, runner.shape.contextLength) - begin.length;
  let [bits, bytes, tokens] = [0, 0, 0];
  for (let start = 0; start < ids.length; start += window) {
    const part = [...begin, ...ids.slice(start, start + window)];
    const first = Math.max(1, begin.length);
    bits += await windowBits(runner, part, first);
    tokens += part.length - first;
    for (const id of part.slice(first)) bytes += bytesOf(tokenizer.tokenBytes, id).length;
  }
  if (bytes === 0) throw new HubError('the text has no token to predict; give a longer one');
  return { bitsPerByte: bits / bytes, bytes, tokens };
}

/** −log2 of the probability of tokens [first, end), each given those before it. */
async function windowBits(runner: ModelRunner, tokens: readonly number[], first: number): Promise<number> {
  const { prefillChunk, vocabularySize } = runner.shape;
  let bits = 0;
  for (let start = 0; start < tokens.length; start += prefillChunk) {
    const chunk = Int32Array.from(tokens.slice(start, start + prefillChunk));
    const predicted = [...chunk.keys()].filter(
      (at) => start + at + 1 >= first && start + at + 1 < tokens.length,
    );
    const logitsAt = Int32Array.from(predicted);
    const logits = await runner.prefill({ slot: 0, start, tokens: chunk, logitsAt }, NEVER);
    for (const [row, at] of predicted.entries()) {
      const logitsOfRow = logits.subarray(row * vocabularySize, (row + 1) * vocabularySize);
      bits += surprise(logitsOfRow, tokens[start + at + 1]!);
    }
  }
  return bits;
}

/** −log2 of the probability of a token. */
function surprise(logits: Float32Array, token: number): number {
  let largest = -Infinity;
  for (const logit of logits) if (logit > largest) largest = logit;
  let sum = 0;
  for (const logit of logits) sum += Math.exp(logit - largest);
  return (Math.log(sum) + largest - logits[token]!) / Math.LN2;
}
