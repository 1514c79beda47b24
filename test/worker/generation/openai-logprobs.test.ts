import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { TokenLogprob } from '../../../shared/generation.ts';
import { shortestFloat32, shownLogprob } from '../../../worker/generation/format/float32.ts';
import {
  LogprobsFormatter,
  type LogprobsOptions,
  logprobsJson,
  promptLogprobsJson,
} from '../../../worker/generation/format/openai-logprobs.ts';
import { CodePointCounter, codePointLength } from '../../../worker/generation/format/text-offsets.ts';
import { lossyText, tokenText } from '../../../worker/generation/format/token-text.ts';
import { runs } from '../../support/random.ts';
import { type PlainLogprobs, slowLogprobs, slowShortest, slowTopIds } from './slow-logprobs.ts';

const units = (text: string): string => Buffer.from(text, 'utf8').toString('latin1');

const options = { tokensAsIds: false, tokenIds: false, rowMembers: [] };

const format = (
  tokens: readonly TokenLogprob[],
  topLogprobs: number,
  more: Partial<LogprobsOptions> = {},
): PlainLogprobs =>
  JSON.parse(logprobsJson(new LogprobsFormatter({ ...options, topLogprobs, ...more }).format(tokens)));

const float32 = fc.float({ max: 0, noNaN: true, min: Math.fround(-60) });

/** Bytes that meet every branch of a UTF-8 decoder often: whole characters, cut ones, and rubbish. */
const bytes = fc.oneof(
  fc.string({ unit: 'grapheme', minLength: 1, maxLength: 3 }).map((text) => units(text.toWellFormed())),
  fc.constantFrom(
    '\xe2',
    '\x82',
    '\xac',
    '\xf0\x9f',
    '\x98\x80',
    '\xed\xa0',
    '\xc0',
    '\xff',
    '\xf4\x90',
    '\xef\xbf\xbd',
    'a',
    '',
    '\xef\xbb\xbf',
  ),
);

const tokenArbitrary: fc.Arbitrary<TokenLogprob> = fc
  .record({
    id: fc.nat(9),
    bytes,
    logprob: float32,
    others: fc.array(fc.tuple(fc.nat(9), bytes, float32), { maxLength: 6 }),
    hidden: fc.boolean(),
    own: fc.boolean(),
  })
  .map(({ id, bytes: own, logprob, others, hidden, own: listed }) => {
    const rivals = others.filter(([other]) => other !== id);
    const all: [number, string, number][] = listed ? [...rivals, [id, own, logprob]] : rivals;
    const unique = [...new Map(all.map((one) => [one[0], one])).values()].toSorted((a, b) => b[2] - a[2]);
    return { id, bytes: own, logprob, topLogprobs: unique, ...(hidden ? { hidden } : {}) };
  });

test('the arrays equal those of a reference formatter for any bytes', () => {
  fc.assert(
    fc.property(fc.array(tokenArbitrary, { maxLength: 12 }), fc.nat(5), (tokens, topLogprobs) => {
      const slow = slowLogprobs(tokens, topLogprobs);
      expect(format(tokens, topLogprobs)).toEqual(slow);
      const ids = tokens.map((token) => slowTopIds(token, topLogprobs));
      expect(format(tokens, topLogprobs, { tokenIds: true })).toEqual({ ...slow, top_token_ids: ids });
    }),
    { numRuns: runs(500) },
  );
});

test('formatting in parts equals formatting at once', () => {
  fc.assert(
    fc.property(fc.array(tokenArbitrary, { maxLength: 12 }), fc.nat(12), (tokens, cut) => {
      const formatter = new LogprobsFormatter({ ...options, topLogprobs: 3 });
      const [left, right] = [formatter.format(tokens.slice(0, cut)), formatter.format(tokens.slice(cut))];
      expect([...left.textOffset, ...right.textOffset]).toEqual(format(tokens, 3).text_offset);
    }),
    { numRuns: runs(200) },
  );
});

/** Returns the bytes that a token name stands for. */
function bytesOfName(name: string): Buffer {
  const escaped = /^bytes:((?:\\x[0-9a-f]{2})+)$/.exec(name)?.[1];
  return escaped === undefined
    ? Buffer.from(name, 'utf8')
    : Buffer.from(escaped.replaceAll('\\x', ''), 'hex');
}

test('the joined tokens are the bytes of the text, wherever characters are split', () => {
  const text = fc.string({ unit: 'grapheme', maxLength: 20 }).map((value) => value.toWellFormed());
  const cutText = fc.tuple(text, fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 80, maxLength: 80 }));
  fc.assert(
    fc.property(cutText, ([value, lengths]) => {
      fc.pre(!value.includes('bytes:'));
      let rest = units(value);
      const tokens: TokenLogprob[] = [];
      for (let index = 0; rest !== ''; index += 1) {
        const length = lengths[index % lengths.length] ?? 1;
        tokens.push({ id: index, bytes: rest.slice(0, length), logprob: -1, topLogprobs: [] });
        rest = rest.slice(length);
      }
      const { tokens: names, text_offset: offsets } = format(tokens, 0);
      expect(Buffer.concat(names.map(bytesOfName)).toString('utf8')).toBe(value);
      const characters = Array.from(value);
      for (const [index, name] of names.entries()) {
        if (!name.startsWith('bytes:'))
          expect(characters.slice(offsets[index]).join('').startsWith(name)).toBe(true);
      }
    }),
    { numRuns: runs(300) },
  );
});

describe('top logprobs', () => {
  const token: TokenLogprob = {
    id: 7,
    bytes: ' a',
    logprob: -2.5,
    topLogprobs: [
      [1, ' b', -0.5],
      [2, ' c', -1],
      [3, ' d', -1.5],
    ],
  };

  test('are the N best and the token itself, best first', () => {
    expect(format([token], 2).top_logprobs).toEqual([{ ' b': -0.5, ' c': -1, ' a': -2.5 }]);
    expect(format([token], 0).top_logprobs).toEqual([{ ' a': -2.5 }]);
  });

  test('keep their order for names that look like numbers', () => {
    const numbers: TokenLogprob = {
      ...token,
      topLogprobs: [
        [1, '9', -0.5],
        [2, '1', -1],
      ],
    };
    const json = logprobsJson(new LogprobsFormatter({ ...options, topLogprobs: 2 }).format([numbers]));
    expect(json).toContain('{"9":-0.5,"1":-1," a":-2.5}');
  });

  test('accept a token named __proto__', () => {
    const odd: TokenLogprob = { id: 1, bytes: '__proto__', logprob: -1, topLogprobs: [] };
    const json = logprobsJson(new LogprobsFormatter({ ...options, topLogprobs: 0 }).format([odd]));
    expect(json).toContain('"top_logprobs":[{"__proto__":-1}]');
  });

  test('name ids with the text of another by their number: the token itself has it, or else the best', () => {
    const collision: TokenLogprob = { ...token, bytes: ' b' };
    const { token_logprobs, top_logprobs, top_token_ids } = format([collision], 1, { tokenIds: true });
    expect(token_logprobs).toEqual([-2.5]);
    expect(top_logprobs).toEqual([{ 'token_id:1': -0.5, ' b': -2.5 }]);
    expect(top_token_ids).toEqual([{ 'token_id:1': 1, ' b': 7 }]);
    const others: TokenLogprob = {
      ...token,
      topLogprobs: [
        [1, ' b', -0.5],
        [2, ' b', -1],
        [3, ' b', -1.5],
      ],
    };
    expect(format([others], 3).top_logprobs).toEqual([
      { ' b': -0.5, 'token_id:2': -1, 'token_id:3': -1.5, ' a': -2.5 },
    ]);
    expect(format([collision], 1, { tokensAsIds: true }).top_logprobs).toEqual([
      { 'token_id:1': -0.5, 'token_id:7': -2.5 },
    ]);
  });

  test('are null for the first prompt token; −∞ is -9999', () => {
    const first: TokenLogprob = { id: 1, bytes: 'a', logprob: null, topLogprobs: null };
    const never: TokenLogprob = { id: 2, bytes: 'b', logprob: -9_999, topLogprobs: [[3, 'c', -12_345]] };
    expect(format([first, never], 1)).toEqual({
      tokens: ['a', 'b'],
      token_logprobs: [null, -9_999],
      top_logprobs: [null, { b: -9_999, c: -9_999 }],
      text_offset: [0, 1],
    });
  });

  test('have the token’s value of token_logprobs, bit for bit', () => {
    fc.assert(
      fc.property(float32, (logprob) => {
        const { token_logprobs, top_logprobs } = format(
          [{ id: 1, bytes: 'a', logprob, topLogprobs: [[1, 'a', logprob]] }],
          1,
        );
        expect(top_logprobs[0]?.a).toBe(token_logprobs[0]);
      }),
    );
  });

  test('prompt_logprobs has the prompt’s own token first, then the best by rank, whatever their ids', () => {
    const first: TokenLogprob = { id: 1, bytes: 'a', logprob: null, topLogprobs: null };
    const listed: TokenLogprob = { ...token, id: 1, bytes: ' b', logprob: -0.5 };
    expect(promptLogprobsJson([first, { ...token, rank: 9 }, token, listed], 1)).toBe(
      '[null,{"7":{"logprob":-2.5,"rank":9,"decoded_token":" a"},"1":{"logprob":-0.5,"rank":1,"decoded_token":" b"}},' +
        // Of an origin that does not know the rank: the best that it can be.
        '{"7":{"logprob":-2.5,"rank":4,"decoded_token":" a"},"1":{"logprob":-0.5,"rank":1,"decoded_token":" b"}},' +
        '{"1":{"logprob":-0.5,"rank":1,"decoded_token":" b"}}]',
    );
    expect(promptLogprobsJson([{ ...token, rank: 9 }], 0)).toBe(
      '[{"7":{"logprob":-2.5,"rank":9,"decoded_token":" a"}}]',
    );
  });
});

test('a hidden token has its literal name, its offset and no length', () => {
  const tokens: TokenLogprob[] = [
    { id: 0, bytes: '<s>', logprob: null, topLogprobs: null, hidden: true },
    { id: 1, bytes: units('é'), logprob: -1, topLogprobs: [] },
    { id: 2, bytes: '<|end|>', logprob: -1, topLogprobs: [], hidden: true },
  ];
  expect(format(tokens, 0)).toMatchObject({ tokens: ['<s>', 'é', '<|end|>'], text_offset: [0, 0, 1] });
});

describe('numbers and characters', () => {
  test('shortestFloat32 returns the decimal with the fewest digits', () => {
    fc.assert(
      fc.property(
        fc.float({ noNaN: true, noDefaultInfinity: true, min: Math.fround(-9_998), max: 0 }),
        (value) => {
          expect(shortestFloat32(value)).toBe(slowShortest(value));
          expect(Math.fround(shownLogprob(value)) === value).toBe(true);
        },
      ),
      { numRuns: runs(2_000) },
    );
  });

  test('the code point counter agrees with a decoder for any bytes', () => {
    fc.assert(
      fc.property(fc.array(bytes, { maxLength: 20 }), (parts) => {
        const all = parts.join('');
        const counter = new CodePointCounter();
        for (const unit of all) counter.push(unit.charCodeAt(0));
        const complete = new TextDecoder('utf-8', { ignoreBOM: true, fatal: false }).decode(
          Buffer.from(all, 'latin1'),
          {
            stream: true,
          },
        );
        expect(counter.positionOf(undefined)).toBe(Array.from(complete).length);
      }),
      { numRuns: runs(500) },
    );
  });

  test('codePointLength agrees with the string iterator, lone surrogates included', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.constantFrom('', '\ud83d', '\ude00'), (text, lone) => {
        expect(codePointLength(text + lone)).toBe(Array.from(text + lone).length);
      }),
    );
  });

  test('token names keep a byte order mark and escape partial characters', () => {
    expect(tokenText('\xef\xbb\xbfa')).toBe('\ufeffa');
    expect(tokenText('\xe2\x82')).toBe('bytes:\\xe2\\x82');
    expect(tokenText('a\xff')).toBe('bytes:\\x61\\xff');
    expect(lossyText('a\xff')).toBe('a\ufffd');
  });
});
