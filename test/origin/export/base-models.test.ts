import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { describeFamily } from '../../../origin/export/families/families.ts';
import { BASE_MODELS, pageOf, rowOf } from '../../tools/base-models/table.ts';

const page = readFileSync(new URL('../../../docs/base-models.md', import.meta.url), 'utf8');
const rows = page.split('\n').filter((line) => line.startsWith('| `'));

/** Rows of models with less than 600 M parameters: their graphs are written in a moment. */
const isSmall = (row: string) => / ([1-5]\d{2}|\d{2}) M /.test(row);

test('the page has each model once, with a source of its configuration', () => {
  expect(page).toBe(pageOf(rows));
  expect(rows.map((row) => row.split('`')[1])).toEqual(BASE_MODELS.map(({ name }) => name));
  expect(new Set(BASE_MODELS.map(({ name }) => name)).size).toBe(BASE_MODELS.length);
  for (const { name, source } of BASE_MODELS) expect(source, name).toMatch(/^[\w.-]+\/[\w.-]+:\S+/);
});

describe('the page says what the families accept', () => {
  test.each(BASE_MODELS.map((model, index) => ({ ...model, row: rows[index]! })))('$name', (model) => {
    const isRefused = model.row.includes('| refused: ');
    const described = () => describeFamily(model.config, new Set());
    if (isRefused) expect(described).toThrow('config.json: ');
    else expect(described).not.toThrow();
    if (isRefused || isSmall(model.row)) expect(rowOf(model)).toBe(model.row);
  });
});
