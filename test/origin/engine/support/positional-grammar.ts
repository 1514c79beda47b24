import type { CompiledGrammar } from '../../../../origin/grammar/runtime/constraint.ts';

/** For grammars of tests that are not about bytes. */
export const TOKENS_ONLY = {
  allowsBytes: () => true,
  acceptBytes: () => undefined,
  save: () => () => undefined,
};

/** Returns a grammar with a list of allowed tokens per position; complete after the last. */
export const grammarOf = (
  places: readonly (readonly number[])[],
  vocabularySize: number,
): CompiledGrammar => ({
  start: () => {
    let at = 0;
    return {
      get accepting() {
        return at === places.length;
      },
      mask: () => {
        const mask = new Uint32Array((vocabularySize + 31) >>> 5);
        for (const id of places[at] ?? []) mask[id >>> 5]! |= 1 << (id & 31);
        return mask;
      },
      ...TOKENS_ONLY,
      save: () => {
        const saved = at;
        return () => {
          at = saved;
        };
      },
      accept: (token) => {
        if (!places[at]?.includes(token)) throw new Error('the grammar does not allow this token');
        at++;
      },
    };
  },
});
