type Members = Readonly<Record<string, unknown>>;

/** Keywords whose value holds schemas by name or by index. */
const HOLDERS = ['properties', 'prefixItems', 'anyOf', '$defs', 'definitions'] as const;
const UNSUPPORTED = ['allOf', 'not', 'dependentRequired', 'dependentSchemas', 'if', 'then', 'else'] as const;

/** Objects in one another. References are not followed. */
const MAX_LEVELS = 10;
/** The limits of a whole schema. `characters`: names of properties and definitions, texts in enums. */
const MAX_TOTALS = { properties: 5000, 'enum values': 1000, characters: 120_000 };
/** An enum of more texts has a limit of its own. */
const MAX_FREE_TEXTS = 250;
const MAX_ENUM_CHARACTERS = 15_000;

type Totals = Record<keyof typeof MAX_TOTALS, number>;

const membersOf = (value: unknown): Members =>
  typeof value === 'object' && value !== null ? (value as Members) : {};

/** Escapes a name for a JSON pointer. */
const escapeKey = (name: string): string => name.replaceAll('~', '~0').replaceAll('/', '~1');

const isObjectSchema = (schema: Members): boolean =>
  [schema.type].flat().includes('object') || schema.properties !== undefined;

/** Returns what is wrong with one schema, without the schemas in it; null if nothing is. */
function ownViolation(schema: Members): string | null {
  const unsupported = UNSUPPORTED.find((keyword) => schema[keyword] !== undefined);
  if (unsupported !== undefined) return `'${unsupported}' is not permitted`;
  if (!isObjectSchema(schema)) return null;
  if (schema.additionalProperties !== false) return "'additionalProperties' must be false";
  const required: unknown[] = [schema.required].flat();
  const missing = Object.keys(membersOf(schema.properties)).find((name) => !required.includes(name));
  return missing === undefined ? null : `'required' must contain '${missing.slice(0, 64)}'`;
}

/** Adds what one schema contains. Returns the limit that it exceeds; null if it exceeds none. */
function addTo(totals: Totals, schema: Members): string | null {
  const names = Object.keys(membersOf(schema.properties));
  const values: readonly unknown[] = Array.isArray(schema.enum) ? schema.enum : [];
  const lengthOf = (list: readonly unknown[]): number =>
    list.reduce<number>((sum, value) => sum + (typeof value === 'string' ? value.length : 0), 0);
  totals.properties += names.length;
  totals['enum values'] += values.length;
  const definitions = [schema.$defs, schema.definitions].flatMap((map) => Object.keys(membersOf(map)));
  totals.characters += lengthOf([...names, ...definitions, ...values, schema.const]);
  if (values.length > MAX_FREE_TEXTS && lengthOf(values) > MAX_ENUM_CHARACTERS)
    return `an enum of more than ${MAX_FREE_TEXTS} values may have at most ${MAX_ENUM_CHARACTERS} characters, received ${lengthOf(values)}`;
  for (const [name, limit] of Object.entries(MAX_TOTALS))
    if (totals[name as keyof Totals] > limit) return `a schema may have at most ${limit} ${name}, exceeded`;
  return null;
}

/**
 * Returns why OpenAI's strict mode rejects a schema, with the path of the schema in it; null if it does not.
 * In strict mode, objects have no undeclared and no optional properties.
 */
export function strictViolation(value: unknown): string | null {
  const root = membersOf(value);
  if (root.anyOf !== undefined || !isObjectSchema(root))
    return "'type' must be 'object', without 'anyOf' beside it, at #";
  return violationIn(value, '#', 0, { properties: 0, 'enum values': 0, characters: 0 });
}

/** @param levels number of objects around the schema */
function violationIn(value: unknown, path: string, levels: number, totals: Totals): string | null {
  const schema = membersOf(value);
  const level = levels + (isObjectSchema(schema) ? 1 : 0);
  const violation = ownViolation(schema) ?? addTo(totals, schema);
  if (violation !== null) return `${violation} at ${path}`;
  if (level > MAX_LEVELS) return `objects nest deeper than ${MAX_LEVELS} levels at ${path}`;
  const nested = HOLDERS.flatMap((key) =>
    Object.entries(membersOf(schema[key])).map(([name, child]) => ({
      place: `${key}/${escapeKey(name)}`,
      child,
      around: key === '$defs' || key === 'definitions' ? 0 : level,
    })),
  );
  if (schema.items !== undefined) nested.push({ place: 'items', child: schema.items, around: level });
  for (const { place, child, around } of nested) {
    const inner = violationIn(child, `${path}/${place}`, around, totals);
    if (inner !== null) return inner;
  }
  return null;
}
