type JsonObject = Record<string, unknown>;

/** A reviver that also gets the source text of primitive values, as current engines call it. */
type SourceReviver = (
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

/** Returns what JSON.stringify writes as this number, with all digits. */
export function exactNumber(value: number | string): unknown {
  const { rawJSON } = JSON as typeof JSON & { rawJSON(text: string): unknown };
  return typeof value === 'string' ? rawJSON(value) : value;
}
