import Table from 'cli-table3';
import type { AdminApi, AdminObject } from './api.ts';

/** Dependencies of a command: the admin API and the output. */
export interface Session {
  readonly api: AdminApi;
  showList(rows: readonly AdminObject[], columns: readonly string[]): void;
  showOne(object: AdminObject): void;
}

export type OpenSession = () => Session;

/** Shows lists and objects as tables, or as JSON. */
export function createSession(api: AdminApi, print: (text: string) => void, json: boolean): Session {
  const printJson = (value: unknown): void => print(JSON.stringify(value, null, 2));
  return {
    api,
    showList: (rows, columns) => (json ? printJson(rows) : print(listTable(rows, columns))),
    showOne: (object) => (json ? printJson(object) : print(objectTable(object))),
  };
}

/** Formats a value. Names that end in `_at` hold Unix seconds. */
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

const plain = { style: { head: [], border: [] } };

/** One row per object. Columns that no object has are left out. */
function listTable(rows: readonly AdminObject[], columns: readonly string[]): string {
  const shown = columns.filter((name) => rows.some((row) => row[name] !== undefined));
  if (rows.length === 0) return 'No entries.';
  const table = new Table({ ...plain, head: shown });
  for (const row of rows) table.push(shown.map((name) => cell(name, row[name])));
  return table.toString();
}

/** One row per field of the object. */
function objectTable(object: AdminObject): string {
  const table = new Table(plain);
  for (const [name, value] of Object.entries(object)) {
    if (name !== 'object') table.push({ [name]: cell(name, value) });
  }
  return table.toString();
}
