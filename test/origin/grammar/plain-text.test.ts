import { expect, test } from 'vitest';
import { WorkBudget } from '../../../origin/grammar/automaton/work-budget.ts';
import { compileProgram } from '../../../origin/grammar/compile.ts';
import { COUNTED_BYTES, isPlain, PlainText } from '../../../origin/grammar/runtime/plain-text.ts';
import { StateTable } from '../../../origin/grammar/runtime/state-table.ts';
import { randomFrom } from '../../support/random.ts';

/** Bytes with every boundary of UTF-8's ranges. */
const BYTES = [
  ...[0x1f, 0x20, 0x21, 0x22, 0x41, 0x5b, 0x5c, 0x5d, 0x7e, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0],
  ...[0xc1, 0xc2, 0xdf, 0xe0, 0xe1, 0xec, 0xed, 0xee, 0xef, 0xf0, 0xf1, 0xf3, 0xf4, 0xf5, 0xff],
];

/** Ends that complete a character of which one to three bytes are missing. */
const ENDS = [[], ...[0x80, 0x8f, 0x90, 0xa0].flatMap((byte) => [[byte], [byte, 0x80], [byte, 0x80, 0x80]])];

function beginsPlainText(bytes: readonly number[]): boolean {
  return ENDS.some((end) => {
    try {
      const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(
        Uint8Array.from([...bytes, ...end]),
      );
      return [...text].every((char) => char >= ' ' && !['"', '\\', '\x7f'].includes(char));
    } catch {
      return false;
    }
  });
}

test('plain text is UTF-8 without quotes, backslashes and control characters, cut anywhere', () => {
  const random = randomFrom(5);
  const texts = BYTES.flatMap((one) => BYTES.map((two) => [one, two]));
  for (let i = 0; i < 20_000; i++) {
    const length = 1 + Math.floor(random() * 6);
    texts.push(Array.from({ length }, () => BYTES[Math.floor(random() * BYTES.length)]!));
  }
  const wrong = texts.filter((bytes) => isPlain(String.fromCharCode(...bytes)) !== beginsPlainText(bytes));
  expect(wrong).toEqual([]);
});

test.each([
  [{ type: 'string' }, '"', Number.POSITIVE_INFINITY],
  [{ type: 'string' }, '"abc', Number.POSITIVE_INFINITY],
  [{ type: 'string', maxLength: 12 }, '"', 12],
  [{ type: 'string', maxLength: 12 }, '"abc', 9],
  [{ type: 'string', maxLength: 5000 }, '"abc', COUNTED_BYTES],
  [{ type: 'string', pattern: '^a' }, '"', 0],
  [{ type: 'string', pattern: '^a' }, '"a', Number.POSITIVE_INFINITY],
  [{ type: 'integer' }, '', 0],
])('of the schema %j after %s, %d bytes of plain text are free', (value, start, expected) => {
  const program = compileProgram({ type: 'json_schema', value });
  const table = new StateTable(program);
  const budget = new WorkBudget(10_000_000);
  let state = table.initial;
  for (const byte of new TextEncoder().encode(start)) state = table.next(state, byte, budget);
  expect(new PlainText(program).freeBytes(table, state, budget, 1_000_000)).toBe(expected);
});
