/** Numbers of JSON texts that a double would round. */

type JsonObject = Record<string, unknown>;

/** A reviver that also gets the source text of primitive values, as current engines call it. */
export type SourceReviver = (
  this: unknown,
  key: string,
  value: unknown,
  context: { readonly source?: string },
) => unknown;

const isUnsafe = (value: unknown): value is number =>
  typeof value === 'number' && Number.isInteger(value) && !Number.isSafeInteger(value);

/**
 * Parses JSON. In an object, an integer under `name` that a double does not hold exactly becomes a bigint.
 * @throws SyntaxError
 */
export function parseExactly(text: string, name: string): unknown {
  const parsed: unknown = JSON.parse(text);
  const value = typeof parsed === 'object' && parsed !== null ? (parsed as JsonObject)[name] : undefined;
  if (!isUnsafe(value)) return parsed;
  // A reviver is slow, so only the few bodies that need one get it. The outermost object comes last.
  const sources = new WeakMap<object, string>();
  const remember: SourceReviver = function (key, inner, { source }) {
    if (key === name && isUnsafe(inner) && source !== undefined) sources.set(this as object, source);
    return inner;
  };
  const again = JSON.parse(text, remember as Parameters<typeof JSON.parse>[1]) as JsonObject;
  const source = sources.get(again) ?? '';
  return { ...again, [name]: BigInt(/^-?\d+$/.test(source) ? source : value) };
}

/** A number that a double may round: one of more than 15 digits, or one too close to zero. */
const LONG_NUMBER = /[\d.]{16}|[eE]-\d{3}/;

/**
 * Parses JSON so that JSON.stringify writes its numbers with all digits again.
 * @param keep returns what stands for a number that a double may round
 * @throws SyntaxError
 */
export function parseWithDigits(
  text: string,
  keep: (source: string, rounded: number) => unknown = exactNumber,
): unknown {
  // A reviver is slow, so only texts with a long number get one.
  if (!LONG_NUMBER.test(text)) return JSON.parse(text);
  const reviver: SourceReviver = (_, value, { source }) => {
    const isLong = typeof value === 'number' && source !== undefined && LONG_NUMBER.test(source);
    return isLong && Number.isFinite(value) ? keep(source, value) : value;
  };
  return JSON.parse(text, reviver as Parameters<typeof JSON.parse>[1]);
}

/**
 * Returns an object that a text was parsed to. The numbers in its fields `names` keep their digits, as in
 * `parseWithDigits`.
 */
export function withDigits<T extends object>(parsed: T, text: string, names: readonly string[]): T {
  const kept = names.filter((name) => {
    const value = (parsed as JsonObject)[name];
    return typeof value === 'object' && value !== null;
  });
  if (kept.length === 0 || !LONG_NUMBER.test(text)) return parsed;
  const again = parseWithDigits(text) as JsonObject;
  return { ...parsed, ...Object.fromEntries(kept.map((name) => [name, again[name]])) };
}

/** A number as its text. JSON.stringify writes it as it is. */
export interface RawNumber {
  readonly rawJSON: string;
}

export function isRawNumber(value: unknown): value is RawNumber {
  // A browser may lack it, and then it has no such numbers.
  return (JSON as typeof JSON & { isRawJSON?(value: unknown): boolean }).isRawJSON?.(value) === true;
}

/** Returns what JSON.stringify writes as this number, with all digits. */
export function exactNumber(value: number | string): unknown {
  const { rawJSON } = JSON as typeof JSON & { rawJSON(text: string): unknown };
  return typeof value === 'string' ? rawJSON(value) : value;
}
