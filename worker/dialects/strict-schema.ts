type Members = Readonly<Record<string, unknown>>;

/** Keywords whose value holds schemas by name or by index. */
const HOLDERS = ['properties', 'prefixItems', 'anyOf', '$defs', 'definitions'] as const;

const membersOf = (value: unknown): Members =>
  typeof value === 'object' && value !== null ? (value as Members) : {};

/** Escapes a name for a JSON pointer. */
const escapeKey = (name: string): string => name.replaceAll('~', '~0').replaceAll('/', '~1');

/** Returns what is wrong with one schema, without the schemas in it; null if nothing is. */
function ownViolation(schema: Members): string | null {
  if (![schema.type].flat().includes('object') && schema.properties === undefined) return null;
  if (schema.additionalProperties !== false) return "'additionalProperties' must be false";
  const required: unknown[] = [schema.required].flat();
  const missing = Object.keys(membersOf(schema.properties)).find((name) => !required.includes(name));
  return missing === undefined ? null : `'required' must contain '${missing.slice(0, 64)}'`;
}

/**
 * Returns why OpenAI's strict mode rejects a schema, with the path of the schema in it; null if it does not.
 * In strict mode, objects have no undeclared and no optional properties.
 */
export function strictViolation(value: unknown, path = '#'): string | null {
  const schema = membersOf(value);
  const own = ownViolation(schema);
  if (own !== null) return `${own} at ${path}`;
  const nested = HOLDERS.flatMap((key) =>
    Object.entries(membersOf(schema[key])).map(([name, one]) => ({
      place: `${key}/${escapeKey(name)}`,
      one,
    })),
  );
  if (schema.items !== undefined) nested.push({ place: 'items', one: schema.items });
  for (const { place, one } of nested) {
    const violation = strictViolation(one, `${path}/${place}`);
    if (violation !== null) return violation;
  }
  return null;
}
