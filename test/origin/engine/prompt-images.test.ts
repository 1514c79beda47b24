import fc from 'fast-check';
import { expect, it } from 'vitest';
import { KvSlots } from '../../../origin/engine/kv/kv-slots.ts';
import type { PromptSpan } from '../../../origin/engine/kv/prompt-match.ts';
import { runs } from '../../support/random.ts';

const CHUNK = 4;

/** A prompt as a list of tokens and images. An image takes three positions of equal tokens. */
const prompt = fc.array(fc.oneof(fc.constantFrom(1, 2), fc.constantFrom('a', 'b')), {
  minLength: 1,
  maxLength: 12,
});

function laidOut(parts: readonly (number | string)[]) {
  const tokens: number[] = [];
  const contents: string[] = [];
  const images: PromptSpan[] = [];
  for (const part of parts) {
    if (typeof part === 'string') images.push({ at: tokens.length, count: 3, key: part });
    for (let i = 0; i < (typeof part === 'string' ? 3 : 1); i++) {
      tokens.push(typeof part === 'string' ? 9 : part);
      contents.push(`${part}${i}`);
    }
  }
  return { tokens: Int32Array.from(tokens), contents, images };
}

it('the prefix cache shares exactly the whole chunks in which tokens and images are equal', () => {
  let shared = 0;
  fc.assert(
    fc.property(prompt, prompt, fc.nat(12), (first, second, common) => {
      const one = laidOut(first);
      const other = laidOut([...first.slice(0, common), ...second]);
      const kv = new KvSlots({ slots: 2, contextLength: 64, prefillChunk: CHUNK });
      const { slot } = kv.assign(one.tokens, 'x', Infinity, one.images);
      kv.record(slot, one.tokens.length);
      const same = other.contents.findIndex((content, at) => content !== one.contents[at]);
      const length = Math.min(same < 0 ? Infinity : same, one.tokens.length, other.tokens.length - 1);
      const whole = (positions: number) => positions - (positions % CHUNK);
      const { cached } = kv.assign(other.tokens, 'x', Infinity, other.images);
      const inImage = one.images.some(({ at, count }) => at < length && length < at + count);
      // If the prompts differ within an image, the whole image counts as different.
      if (inImage && same >= 0 && same === length) expect(cached).toBeLessThanOrEqual(whole(length));
      else expect(cached).toBe(Math.min(whole(length), whole(one.tokens.length)));
      if (cached > 0) shared++;
    }),
    { numRuns: runs(500) },
  );
  expect(shared).toBeGreaterThan(runs(250));
});
