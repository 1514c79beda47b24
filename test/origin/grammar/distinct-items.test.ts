import fc from 'fast-check';
import { expect, it } from 'vitest';
import { WorkBudget } from '../../../origin/grammar/automaton/work-budget.ts';
import { compileProgram } from '../../../origin/grammar/compile.ts';
import {
  mayRepeat,
  nextPosition,
  OUTSIDE,
  type TextPosition,
} from '../../../origin/grammar/runtime/distinct-items.ts';
import { StateTable } from '../../../origin/grammar/runtime/state-table.ts';
import { runs } from '../../support/random.ts';

const escaped = (text: string): string =>
  [...text]
    .flatMap((char) => Array.from({ length: char.length }, (_, i) => char.charCodeAt(i)))
    .map((unit) => `\\u${unit.toString(16).padStart(4, '0')}`)
    .join('');

/** Two spellings of a string that is well-formed in UTF-16. */
const strings = fc
  .string({
    unit: fc.constantFrom('a', 'b', '"', '\\', '/', '\n', 'é', '日', '😀', ' ', ',', '0'),
    maxLength: 5,
  })
  .map((text) => [JSON.stringify(text), `"${escaped(text)}"`] as const);
const numbers = fc.constantFrom(
  ['0', '-0'],
  ['1', '1.0'],
  ['1', '10e-1'],
  ['100', '1e2'],
  ['120', '1.20E+2'],
  ['0.05', '5e-2'],
  ['-12.5', '-1250e-2'],
);
const scalars = fc.oneof(strings, numbers, fc.constantFrom(['true', 'true'], ['null', 'null']));
const items = fc.oneof(
  scalars,
  fc
    .array(scalars, { maxLength: 3 })
    .map((list) => [
      `[${list.map(([first]) => first).join()}]`,
      `[ ${list.map(([, second]) => second).join(', ')} ]`,
    ]),
  fc
    .tuple(scalars, scalars)
    .map(([[a, b], [c, d]]) => [`{"a":${a},"b":${c}}`, `{ "b": ${d}, "\\u0061": ${b} }`]),
);

const table = new StateTable(
  compileProgram({ type: 'json_schema', value: { type: 'array', uniqueItems: true } }),
);
const start: TextPosition = { state: table.initial, level: OUTSIDE };

/** Null if the text repeats an item. */
const after = (text: string, from: TextPosition | null = start): TextPosition | null =>
  [...Buffer.from(text)].reduce(
    (position: TextPosition | null, byte) =>
      position && nextPosition(table, position, byte, new WorkBudget(1e9)),
    from,
  );

it('an item that is equal to an earlier one in another spelling is refused, and no beginning of it is taken for new', () => {
  fc.assert(
    fc.property(items, fc.boolean(), ([first, second], isSwapped) => {
      const [text, other] = isSwapped ? [second!, first!] : [first!, second!];
      let position = after(`[${text},`);
      for (const char of other) {
        expect(mayRepeat(position!.level), `${text} ${other} ${char}`).toBe(true);
        position = after(char, position);
      }
      expect(after(',', position), `${text} ${other}`).toBeNull();
    }),
    { numRuns: runs(2_000) },
  );
});

it.each([
  ['"thin"', '"tho'],
  ['"th\\nin"', '"thi'],
  ['"\\u0061b"', '"b'],
  ['"日本"', '"日曜'],
  ['12', '13'],
  ['{"name":"a"}', '{"name":"b'],
  ['[true]', '[f'],
])('after %s, an item that begins with %s is new', (item, begun) => {
  expect(mayRepeat(after(`[${item},${begun}`)!.level)).toBe(false);
});
