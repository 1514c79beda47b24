import Table from 'cli-table3';
import type { Terminal } from './terminal.ts';

/** An object of results. Names that end in `_at` hold Unix seconds. */
export type Fields = Readonly<Record<string, unknown>>;

/** Prints results as tables, or as JSON. */
export interface Results {
  /** @param columns shown by the table if any row has them; JSON has all fields */
  list(rows: readonly Fields[], columns: readonly string[]): void;
  one(object: Fields): void;
}

export function createResults(terminal: Terminal, json: boolean): Results {
  const printJson = (value: unknown): void => terminal.print(JSON.stringify(value, null, 2));
  return {
    list: (rows, columns) => (json ? printJson(rows) : terminal.print(listTable(rows, columns))),
    one: (object) => (json ? printJson(object) : terminal.print(objectTable(object))),
  };
}

function cell(name: string, value: unknown): string {
  if (value === null || value === undefined) return '–';
  if (name.endsWith('_at') && typeof value === 'number') {
    return new Date(value * 1000).toISOString().replace('.000Z', 'Z');
  }
  if (typeof value === 'number') return Number.isInteger(value) ? String(value) : value.toFixed(1);
  if (Array.isArray(value)) return value.join(', ');
  if (typeof value === 'object') {
    const fields = Object.entries(value).map(([field, content]) => `${field}=${content ?? 'none'}`);
    return fields.join('\n') || '–';
  }
  return String(value);
}

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

/** One row per field of the object. */
function objectTable(object: Fields): string {
  const rows = Object.entries(object)
    .filter(([name]) => name !== 'object')
    .map(([name, value]) => ({ [name]: cell(name, value) }));
  const isWide = rows.some((row) => Object.values(row)[0]!.length > MAX_VALUE_WIDTH);
  const table = new Table(isWide ? { ...PLAIN, colWidths: [null, MAX_VALUE_WIDTH], wordWrap: true } : PLAIN);
  table.push(...rows);
  return table.toString();
}
