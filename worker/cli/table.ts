import Table from 'cli-table3';
import type { AdminObject } from './api.ts';

/** Times end in `_at` and are Unix seconds. */
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

/** Objects as rows; columns that are not there stay out. */
export function tableOf(rows: readonly AdminObject[], columns: readonly string[]): string {
  const shown = columns.filter((name) => rows.some((row) => row[name] !== undefined));
  if (rows.length === 0) return 'Nothing there.';
  const table = new Table({ ...plain, head: shown });
  for (const row of rows) table.push(shown.map((name) => cell(name, row[name])));
  return table.toString();
}

/** One object as name and value. */
export function cardOf(object: AdminObject): string {
  const table = new Table(plain);
  for (const [name, value] of Object.entries(object)) {
    if (name !== 'object') table.push({ [name]: cell(name, value) });
  }
  return table.toString();
}
