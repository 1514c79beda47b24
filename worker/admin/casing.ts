/** The admin API writes names with underscores, the code does not. */

type SnakeCase<Name extends string> = Name extends `${infer Head}${infer Tail}`
  ? `${Head extends Lowercase<Head> ? Head : `_${Lowercase<Head>}`}${SnakeCase<Tail>}`
  : Name;

type CamelCase<Name extends string> = Name extends `${infer Head}_${infer Letter}${infer Tail}`
  ? `${Head}${Uppercase<Letter>}${CamelCase<Tail>}`
  : Name;

type SnakeCased<Fields> = { [K in keyof Fields as SnakeCase<K & string>]: Fields[K] };
type CamelCased<Fields> = { [K in keyof Fields as CamelCase<K & string>]: Fields[K] };

const renamed = (fields: object, rename: (name: string) => string) =>
  Object.fromEntries(Object.entries(fields).map(([name, value]) => [rename(name), value]));

export const toSnakeCase = <Fields extends object>(fields: Fields) =>
  renamed(fields, (name) =>
    name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
  ) as SnakeCased<Fields>;

export const toCamelCase = <Fields extends object>(fields: Fields) =>
  renamed(fields, (name) =>
    name.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()),
  ) as CamelCased<Fields>;
