import { exactNumber, isRawNumber, parseWithDigits, type RawNumber } from '@continuo/shared/exact-numbers.ts';
import { compareNumbers, decimalOf, decimalText } from './decimal.ts';
import { GrammarError } from './grammar-error.ts';

/** Maximum characters of a number that a double would round. */
const MAX_NUMBER = 1000;

/**
 * Parses JSON. Numbers that a double would round become RawNumbers without exponent.
 * @throws SyntaxError; GrammarError for a number that is too long
 */
export const parseExactJson = (text: string): unknown =>
  parseWithDigits(text, (source, rounded) => {
    if (source.length > MAX_NUMBER)
      throw new GrammarError(`A number has ${source.length} characters; at most ${MAX_NUMBER} are allowed`);
    const exact = exactNumber(source) as RawNumber;
    return compareNumbers(exact, rounded) === 0 ? rounded : exactNumber(decimalText(decimalOf(exact)));
  });

/**
 * @param source what the text is, for the message: `The schema`
 * @throws GrammarError if the text is not JSON
 */
export function parseJson(text: string, source: string): unknown {
  try {
    return parseExactJson(text);
  } catch (error) {
    if (error instanceof GrammarError) throw error;
    throw new GrammarError(`${source} is not valid JSON`);
  }
}

/** A text that is equal for equal JSON values, whatever the order of their members. */
export function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join()}]`;
  if (isRawNumber(value)) return value.rawJSON;
  if (typeof value !== 'object' || value === null) return value === 0 ? '0' : JSON.stringify(value);
  const members = Object.entries(value).map(([key, inner]) => `${JSON.stringify(key)}:${canonical(inner)}`);
  return `{${members.sort().join()}}`;
}
