import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Breakers, LatestBreaker } from '../../../origin/sampling/dry-breakers.ts';
import { dry } from '../../../origin/sampling/logits/dry.ts';
import { TokenHistory } from '../../../origin/sampling/token-history.ts';
import { NEUTRAL_SAMPLING } from '../../../shared/sampling.ts';
import { runs } from '../../support/random.ts';
import { breakersOf, sampleOnce, vocabularyOf, workspaceOf } from './one-token.ts';
import { processed } from './reference.ts';

/** Texts with all kinds of overlap; each letter is a token. */
const TEXTS = ['a', 'b', 'c', 'é', 'ab', 'bc', 'ca', 'aab', 'cab', 'abc', 'bé', 'éa', ' ', ' a', ' ab', ''];
const VOCABULARY = vocabularyOf(TEXTS);
const ZEROS = TEXTS.map(() => 0);

const anyTokens = (maxLength: number) => fc.array(fc.nat(TEXTS.length - 1), { maxLength });
const anyText = fc.string({ unit: fc.constantFrom('a', 'b', 'c', 'é'), minLength: 1, maxLength: 4 });

/** Token sequences a breaker can come as, from the texts: inside one token, or from one's end on. */
function sequencesOf(breaker: string): number[][] {
  const sequences: number[][] = [];
  TEXTS.forEach((text, id) => {
    if (text.includes(breaker)) {
      sequences.push([id]);
      return;
    }
    for (let split = 1; split < breaker.length; split++) {
      if (text.endsWith(breaker.slice(0, split))) {
        sequences.push([id, ...VOCABULARY.encode(breaker.slice(split))]);
      }
    }
  });
  return sequences;
}

describe('DRY', () => {
  it('penalises as the plain reference does, with breakers within and across tokens', () => {
    const trials = fc.record({
      prompt: anyTokens(30),
      generated: fc.array(fc.nat(3), { maxLength: 30 }),
      breakers: fc.array(anyText, { maxLength: 3 }),
      dryAllowedLength: fc.integer({ min: 0, max: 3 }),
      dryPenaltyLastN: fc.integer({ min: -1, max: 25 }),
    });
    fc.assert(
      fc.property(trials, ({ prompt, generated, breakers, ...limits }) => {
        const parameters = {
          ...NEUTRAL_SAMPLING,
          ...limits,
          dryMultiplier: 0.8,
          drySequenceBreakers: breakers,
        };
        const trial = { parameters, logits: ZEROS, prompt, generated, mask: null, forbidden: [] };
        const expected = processed({
          ...trial,
          badSequences: [],
          breakers: breakers.flatMap(sequencesOf),
        });
        if (limits.dryPenaltyLastN === 0) return;
        expect(sampleOnce({ ...trial, texts: TEXTS }).scores).toEqual(expected);
      }),
      { numRuns: runs(2000) },
    );
  });

  it('never forbids a token, however large the penalty', () => {
    const parameters = { dryMultiplier: 1e30, dryBase: 10, dryAllowedLength: 0, drySequenceBreakers: [] };
    const prompt = new Array<number>(200).fill(0);
    const { scores } = sampleOnce({ parameters, logits: [0, 0], prompt });
    expect(scores[0]).toBeLessThan(-1e38);
    expect(scores[0]).toBeGreaterThan(Number.NEGATIVE_INFINITY);
    expect(scores[1]).toBe(0);
  });

  it('handles a long history of one token', () => {
    const prompt = new Array<number>(20_000).fill(0);
    const parameters = { dryMultiplier: 1, dryBase: 1.75, drySequenceBreakers: [] };
    expect(sampleOnce({ parameters, logits: [0, 0], prompt }).token).toBe(1);
  });
});

/** Returns what is found from each token on, if it is the first of these. */
const lengthsAfter = (breakers: Breakers, tokens: readonly number[]): number[] =>
  tokens.map((_, head) => breakers.lengthAfter(Int32Array.from(tokens), head, tokens.length));

/**
 * Breakers that begin in each token of a text of one letter, and differ at their ends, which are tokens as
 * well.
 */
const LAST_LETTERS = Array.from({ length: 64 }, (_, index) => String.fromCharCode(0x3b1 + index));
const REPEATING = ['a'.repeat(8), 'a', ...LAST_LETTERS];
const repeatingBreakers = (count: number) =>
  LAST_LETTERS.slice(0, count).map((letter) => 'a'.repeat(39) + letter);

describe('a breaker', () => {
  it('that tokens split inside a character is found as the tokenisation of the whole text', () => {
    // "é" is C3 A9; here only its bytes exist as tokens.
    const tokenBytes = {
      vocabularySize: 3,
      bytes: Uint8Array.of(0xc3, 0xa9, 0x61),
      offsets: Uint32Array.of(0, 1, 2, 3),
      special: new Uint8Array(3),
    };
    const breakers = new Breakers(
      breakersOf(['é'], (text) => (text === 'é' ? [0, 1] : [])),
      tokenBytes,
    );
    expect(lengthsAfter(breakers, [0, 1, 0, 2, 1])).toEqual([1, -1, -1, -1, -1]);
    expect([0, 1, 2].some((id) => breakers.areIn(id))).toBe(false);
  });

  it('longer than forty characters counts as its first forty', () => {
    const text = 'ab'.repeat(40);
    const { tokenBytes, encode } = vocabularyOf(['a', 'b', text.slice(0, 40), text.slice(0, 39)]);
    const breakers = new Breakers(breakersOf([text], encode), tokenBytes);
    expect([2, 3].map((id) => breakers.areIn(id))).toEqual([true, false]);
  });

  it('ends a token that contains another breaker, but not one that contains itself', () => {
    const { tokenBytes, encode } = vocabularyOf(['xaba', 'b', 'c']);
    const found = (texts: string[], tokens: number[]) =>
      lengthsAfter(new Breakers(breakersOf(texts, encode), tokenBytes), tokens)[0];
    expect(found(['ab'], [0, 1])).toBe(0);
    expect(found(['ab', 'abc'], [0, 1, 2])).toBe(2);
  });

  it.each([1, 64])('costs a look-up in each token, also if there are %i with the same beginning', (count) => {
    const { tokenBytes, encode } = vocabularyOf(REPEATING);
    let bytes = 0;
    const counted = new Proxy(tokenBytes.bytes, {
      get(target, name) {
        bytes++;
        return Reflect.get(target, name, target);
      },
    });
    const prepared = breakersOf(repeatingBreakers(count), encode);
    const breakers = new Breakers(prepared, { ...tokenBytes, bytes: counted });
    expect([0, 1, 0, 1].some((id) => breakers.areIn(id))).toBe(false);
    expect(bytes).toBe((8 * 9) / 2 + 1);
  });

  it('is looked up only for tokens that occur, once for all sequences of a request', () => {
    const dryBreakers = breakersOf(['abc', 'bé'], VOCABULARY.encode);
    const parameters = { ...NEUTRAL_SAMPLING, dryMultiplier: 1, dryBreakers };
    const workspace = workspaceOf(TEXTS.length);
    const looked: number[] = [];
    const offsets = new Proxy(VOCABULARY.tokenBytes.offsets, {
      get(target, name) {
        if (name in TEXTS) looked.push(Number(name));
        return Reflect.get(target, name, target);
      },
    });
    const tokenBytes = { ...VOCABULARY.tokenBytes, offsets };
    for (let choice = 0; choice < 3; choice++) {
      const processor = dry(parameters, tokenBytes, workspace);
      workspace.edits.begin(Float32Array.from(ZEROS));
      processor?.apply(workspace.edits, new TokenHistory(Int32Array.of(7, 2, 7, 2, 7), 5));
    }
    // Where the bytes of each begin and end.
    expect(looked.sort((a, b) => a - b)).toEqual([2, 3, 7, 8]);
  });
});

describe('the latest breaker', () => {
  it('of a growing or shortened history is the one that a search from the end finds', () => {
    const trials = fc.record({
      breakers: fc.array(anyText, { maxLength: 3 }),
      prompt: anyTokens(40),
      generated: anyTokens(60),
      window: fc.integer({ min: 1, max: 100 }),
    });
    fc.assert(
      fc.property(trials, ({ breakers: texts, prompt, generated, window }) => {
        const breakers = new Breakers(breakersOf(texts, VOCABULARY.encode), VOCABULARY.tokenBytes);
        const growing = new LatestBreaker(breakers);
        const history = new TokenHistory(Int32Array.from(prompt), prompt.length + generated.length);
        const push = (id: number) => {
          history.push(id);
          const within = Math.min(window, history.length);
          const expected = new LatestBreaker(breakers).lengthSince(history, within);
          expect(growing.lengthSince(history, within)).toBe(expected);
        };
        generated.forEach(push);
        // A sequence may return to an earlier token.
        const kept = generated.length >> 1;
        history.truncate(prompt.length + kept);
        generated.slice(kept).toReversed().forEach(push);
      }),
      { numRuns: runs(500) },
    );
  });

  it('is searched only near the end of a long history whose rest is known', () => {
    let looks = 0;
    const none = {
      lengthAfter: () => {
        looks++;
        return -1;
      },
    };
    const latest = new LatestBreaker(none);
    const history = new TokenHistory(new Int32Array(10_000), 11_000);
    for (let step = 0; step < 1000; step++) {
      expect(latest.lengthSince(history, history.length)).toBe(history.length);
      history.push(0);
    }
    expect(looks).toBeLessThan(10_000 + 1000 * 25);
  });

  it.each([1, 64])('costs some reads per token, also if %i breakers begin anywhere', (count) => {
    const { tokenBytes, encode } = vocabularyOf(REPEATING);
    const breakers = new Breakers(breakersOf(repeatingBreakers(count), encode), tokenBytes);
    let reads = 0;
    const tokens = new Proxy(new Int32Array(10_000), {
      get(target, name) {
        reads++;
        return Reflect.get(target, name, target);
      },
    });
    expect(new LatestBreaker(breakers).lengthSince({ tokens, length: 10_000 }, 10_000)).toBe(10_000);
    expect(reads).toBeLessThan(10_000 * (1 + 20));
  });
});

describe('bad words', () => {
  it('forbid exactly the tokens that would complete one', () => {
    const words = fc.array(fc.array(fc.nat(TEXTS.length - 1), { minLength: 1, maxLength: 3 }), {
      maxLength: 6,
    });
    fc.assert(
      fc.property(words, anyTokens(6), anyTokens(6), (badTokens, prompt, generated) => {
        const trial = { logits: ZEROS, prompt, generated, mask: null, forbidden: [] };
        const parameters = NEUTRAL_SAMPLING;
        const expected = processed({ ...trial, parameters, badSequences: badTokens, breakers: [] });
        expect(sampleOnce({ ...trial, parameters: { badTokens } }).scores).toEqual(expected);
      }),
      { numRuns: runs(500) },
    );
  });
});
