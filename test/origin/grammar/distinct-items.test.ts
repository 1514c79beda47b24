import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Item } from '../../../origin/grammar/runtime/distinct-items.ts';
import { runs } from '../../support/random.ts';

const bytes = (text: string): string => Buffer.from(text).toString('latin1');

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
      `[ ${list.map(([, second]) => second).join(' , ')} ]`,
    ]),
  fc
    .tuple(scalars, scalars)
    .map(([[a, b], [c, d]]) => [`{"a":${a},"b":${c}}`, `{ "b": ${d}, "\\u0061": ${b} }`]),
);

describe('items that must differ', () => {
  it('are equal in all spellings, and every beginning of one may become the other', () => {
    fc.assert(
      fc.property(items, fc.boolean(), ([first, second], isSwapped) => {
        const [text, other] = isSwapped ? [second!, first!] : [first!, second!];
        const item = new Item(bytes(text));
        expect(new Item(bytes(other)).canonical).toBe(item.canonical);
        for (let end = 0; end <= bytes(other).length; end++)
          expect(item.hasBeginningOf(bytes(other).slice(0, end)), `${text} ${other} ${end}`).toBe(true);
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
  ])('cannot become %s from %s', (item, begun) => {
    expect(new Item(bytes(item)).hasBeginningOf(bytes(begun))).toBe(false);
  });
});
