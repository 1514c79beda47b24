import { isJsonObject } from '@continuo/shared/json-object.ts';
import Table from 'cli-table3';
import type { Terminal } from './terminal.ts';

/** An object of results. Names that end in `_at` or `_from` hold Unix seconds. */
export type Fields = Readonly<Record<string, unknown>>;

/** Prints results as JSON, as tables on a terminal, and as lines with tabs in a pipe. */
export interface Results {
  /** @param columns a table shows those that any row has, a pipe gets all of them; JSON has all fields */
  list(rows: readonly Fields[], columns: readonly string[]): void;
  object(object: Fields): void;
}

export function createResults(terminal: Terminal, json: boolean): Results {
  const printJson = (value: unknown): void => terminal.print(JSON.stringify(value, null, 2));
  if (!json && !terminal.isInteractive) return pipedResults(terminal);
  return {
    list: (rows, columns) => (json ? printJson(rows) : terminal.print(listTable(rows, columns))),
    object: (object) => (json ? printJson(object) : terminal.print(objectTable(object))),
  };
}

/** One line per entry or field. Names of columns go to stderr, as does all but the secret of a new key. */
function pipedResults(terminal: Terminal): Results {
  return {
    list(rows, columns) {
      terminal.note(columns.join('\t'));
      for (const row of rows) terminal.print(columns.map((name) => plainCell(name, row[name])).join('\t'));
    },
    object({ object: _, key, ...fields }) {
      if (typeof key === 'string') terminal.print(key);
      for (const [name, value] of Object.entries(fields)) {
        const line = `${name}\t${plainCell(name, value)}`;
        if (typeof key === 'string') terminal.note(line);
        else terminal.print(line);
      }
    },
  };
}

/** Nothing for an absent value; white space inside of a value would end it. */
const plainCell = (name: string, value: unknown): string =>
  (value ?? null) === null ? '' : cell(name, value, ', ').replaceAll(/\s+/g, ' ');

function cell(name: string, value: unknown, separator = '\n'): string {
  if (value === null || value === undefined) return '–';
  if (/_(?:at|from)$/.test(name) && typeof value === 'number') {
    return new Date(value * 1000).toISOString().replace('.000Z', 'Z');
  }
  if (typeof value === 'number') return Number.isInteger(value) ? String(value) : value.toFixed(1);
  if (isJsonObject(value)) return fieldsOf(value).join(separator) || '–';
  return inline(value);
}

/** Returns `name=value` of each field, with the path of its name: `limits.tokens_per_day=100`. */
const fieldsOf = (object: Fields): string[] =>
  Object.entries(object).flatMap(([name, value]) =>
    isJsonObject(value)
      ? fieldsOf(value).map((field) => `${name}.${field}`)
      : `${name}=${inline(value ?? 'none')}`,
  );

const inline = (value: unknown): string =>
  Array.isArray(value)
    ? value.map((item) => (isJsonObject(item) ? JSON.stringify(item) : inline(item))).join(', ')
    : String(value);

const PLAIN = { style: { head: [], border: [] } };
const MAX_VALUE_WIDTH = 80;

/** One row per object. Columns that no object has are left out. */
function listTable(rows: readonly Fields[], columns: readonly string[]): string {
  const shown = columns.filter((name) => rows.some((row) => row[name] !== undefined));
  if (rows.length === 0) return 'No entries.';
  const table = new Table({ ...PLAIN, head: shown });
  for (const row of rows) table.push(shown.map((name) => cell(name, row[name])));
  return table.toString();
}

function objectTable(object: Fields): string {
  const rows = Object.entries(object)
    .filter(([name]) => name !== 'object')
    .map(([name, value]) => ({ [name]: cell(name, value) }));
  const isWide = rows.some((row) => Object.values(row)[0]!.length > MAX_VALUE_WIDTH);
  const table = new Table(isWide ? { ...PLAIN, colWidths: [null, MAX_VALUE_WIDTH], wordWrap: true } : PLAIN);
  table.push(...rows);
  return table.toString();
}
