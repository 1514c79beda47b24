import { constraintFields } from '@continuo/shared/completion-constraints.ts';
import { MAX_SCHEMA_DEPTH } from '@continuo/shared/json-fields.ts';

/**
 * The deepest values are schemas, so that the limit of a schema decides and names its field. Five levels can
 * be around one.
 */
const MAX_DEPTH = MAX_SCHEMA_DEPTH + 8;
/**
 * Maximum number of strings, names of fields, lists and objects. A parsed `{}` takes many times the memory of
 * its text. Numbers do not, and lists of token ids are long, so numbers are not counted.
 */
const MAX_VALUES = 100_000;

/** Fields with limits of their own: `allowed_token_ids` may list a vocabulary, a schema any numbers. */
const LONG_LISTS: ReadonlySet<string> = new Set(['allowed_token_ids', ...Object.keys(constraintFields)]);

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const [OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d];

/** Returns the index of the quote that ends the string at `start`; the text's length if there is none. */
function stringEnd(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end !== -1; end = text.indexOf('"', end + 1)) {
    let escapes = 0;
    while (text.charCodeAt(end - 1 - escapes) === BACKSLASH) escapes += 1;
    if (escapes % 2 === 0) return end;
  }
  return text.length;
}

/** Why JSON text is too complex to parse. */
interface ComplexityFault {
  readonly message: string;
  /** The field that is too long; null if the whole text is too complex. */
  readonly field: string | null;
}

const fault = (message: string, field: string | null = null): ComplexityFault => ({ message, field });

/** A list or object that has not ended. */
interface OpenValue {
  commas: number;
  /** Number of its own value: the same as the latest while it has only numbers. */
  readonly value: number;
}

/**
 * Returns why JSON text is too complex to parse; null if it is not. Reads the text once and does not check
 * its syntax.
 * @param maxNumbers of each list of numbers
 */
export function complexityFault(text: string, maxNumbers = Infinity): ComplexityFault | null {
  const open: OpenValue[] = [];
  /** The last string directly in the outermost object: the name of the field that follows. */
  let [nameFrom, nameTo] = [0, 0];
  let values = 0;
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    if (code === COMMA) {
      const list = open.at(-1);
      if (list?.value !== values) continue;
      list.commas += 1;
      if (list.commas < maxNumbers) continue;
      const name = text.slice(nameFrom, nameTo);
      if (!LONG_LISTS.has(name)) return fault(`it has more than ${maxNumbers} elements`, name);
    }
    if (code === QUOTE) {
      values += 1;
      const end = stringEnd(text, index);
      if (open.length === 1) [nameFrom, nameTo] = [index + 1, end];
      index = end;
    } else if (code === OPEN_LIST || code === OPEN_OBJECT) {
      values += 1;
      open.push({ commas: 0, value: values });
      if (open.length > MAX_DEPTH) return fault(`it is nested deeper than ${MAX_DEPTH} levels`);
    } else if (code === CLOSE_LIST || code === CLOSE_OBJECT) {
      open.pop();
    }
    if (values > MAX_VALUES) return fault(`it has more than ${MAX_VALUES} strings, lists and objects`);
  }
  return null;
}

/** An escape that is half of a surrogate pair, or both halves. Without one, all texts are well formed. */
const SURROGATE_ESCAPE = /\\u[dD][89a-fA-F]/;

const isIllFormed = (value: unknown): boolean => {
  if (typeof value === 'string') return !value.isWellFormed();
  if (typeof value !== 'object' || value === null) return false;
  return Object.entries(value).some(([name, inner]) => isIllFormed(name) || isIllFormed(inner));
};

/**
 * Returns the field of a body with a lone surrogate, which UTF-8 cannot encode; null if there is none. Two
 * such texts would become the same one.
 * @param text that the body was parsed from
 */
export const fieldWithLoneSurrogate = (text: string, body: object): string | null =>
  SURROGATE_ESCAPE.test(text)
    ? (Object.entries(body).find(([name, value]) => isIllFormed(name) || isIllFormed(value))?.[0] ?? null)
    : null;
