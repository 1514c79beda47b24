/** Names of fields. Bodies write them in snake case, the code in camel case. */

export type SnakeCase<Name extends string> = Name extends `${infer Head}${infer Tail}`
  ? `${Head extends Lowercase<Head> ? Head : `_${Lowercase<Head>}`}${SnakeCase<Tail>}`
  : Name;

type CamelCase<Name extends string> = Name extends `${infer Head}_${infer Letter}${infer Tail}`
  ? `${Head}${Uppercase<Letter>}${CamelCase<Tail>}`
  : Name;

const renamed = (fields: object, rename: (name: string) => string) =>
  Object.fromEntries(Object.entries(fields).map(([name, value]) => [rename(name), value]));

/** Converts the names of fields to those of bodies: `maxTokens` → `max_tokens`. */
export const toSnakeCase = <Fields extends object>(fields: Fields) =>
  renamed(fields, (name) => name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)) as {
    [K in keyof Fields as SnakeCase<K & string>]: Fields[K];
  };

/** Converts the names of fields to those of the code: `max_tokens` → `maxTokens`. */
export const toCamelCase = <Fields extends object>(fields: Fields) =>
  renamed(fields, (name) => name.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())) as {
    [K in keyof Fields as CamelCase<K & string>]: Fields[K];
  };

/** Returns the words of a text: a long list of names reads better as a text than one name per line. */
export const words = (text: string): string[] => text.trim().split(/\s+/);
