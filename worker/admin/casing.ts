/** The admin API writes names with underscores, the code does not. */

type Fields = Readonly<Record<string, unknown>>;

const renamed = (fields: Fields, rename: (name: string) => string): Record<string, unknown> =>
  Object.fromEntries(Object.entries(fields).map(([name, value]) => [rename(name), value]));

export const toSnakeCase = (fields: Fields): Record<string, unknown> =>
  renamed(fields, (name) => name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`));

export const toCamelCase = (fields: Fields): Record<string, unknown> =>
  renamed(fields, (name) => name.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()));
