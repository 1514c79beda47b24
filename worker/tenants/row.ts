import type { SnakeCase } from '@continuo/shared/field-names.ts';

type Column<Value> = Value extends boolean ? number : Value extends object ? string : Value;

/** How a table stores a record: flags are numbers, lists and objects are JSON. */
export type Row<Stored> = { [Name in keyof Stored as SnakeCase<Name & string>]: Column<Stored[Name]> };

/** Whether a column changes, and its new value: for IIF(?, ?, column). */
export const change = (value: string | number | null | undefined): (string | number | null)[] => [
  Number(value !== undefined),
  value ?? null,
];
