import fc from 'fast-check';
import { expect, it } from 'vitest';
import { unfinishedBytes } from '../../../../origin/engine/text/unfinished-bytes.ts';
import { runs } from '../../../support/random.ts';

const bytes = fc.array(
  fc.constantFrom(0x61, 0x80, 0xa9, 0x9f, 0x98, 0xc3, 0xe2, 0xed, 0xf0, 0xf4, 0xff, 0xc0),
  {
    maxLength: 4,
  },
);

it('are those that a decoder holds back, however the text is split', () => {
  fc.assert(
    fc.property(fc.array(bytes, { maxLength: 6 }), (pieces) => {
      let held = new Uint8Array(0);
      const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
      let shown = '';
      for (const piece of pieces) {
        held = Uint8Array.from(unfinishedBytes(held, Uint8Array.from(piece)));
        shown += decoder.decode(Uint8Array.from(piece), { stream: true });
      }
      const all = pieces.flat();
      const before = Uint8Array.from(all.slice(0, all.length - held.length));
      // What is not held back is shown as a whole.
      expect(new TextDecoder('utf-8', { ignoreBOM: true }).decode(before)).toBe(shown);
      expect(Uint8Array.from(all.slice(before.length))).toEqual(held);
    }),
    { numRuns: runs(2000) },
  );
});
