import { expect, test } from 'vitest';
import { createResults } from '../../../origin/terminal/tables.ts';
import type { Terminal } from '../../../origin/terminal/terminal.ts';

/** Returns what is printed into a pipe. */
function piped(row: Readonly<Record<string, unknown>>): string {
  const printed: string[] = [];
  const terminal = { isInteractive: false, print: (line: string) => printed.push(line), note: () => {} };
  createResults(terminal as unknown as Terminal, false).list([row], Object.keys(row));
  return printed.join('\n');
}

test('fields inside of fields are printed with their path', () => {
  const changes = {
    name: 'a',
    limits: { tokens_per_day: 100, micros_per_day: null, deep: { x: 1 } },
    models: ['m', 'n'],
    aliases: {},
    rules: [{ a: 1 }],
  };
  expect(piped({ action: 'updateTenant', changes })).toBe(
    'updateTenant\tname=a, limits.tokens_per_day=100, limits.micros_per_day=none, limits.deep.x=1, models=m, n, rules={"a":1}',
  );
});
