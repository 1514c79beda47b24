import { history, redo, undo } from '@codemirror/commands';
import { EditorState, type Transaction } from '@codemirror/state';
import { type Decoration, EditorView } from '@codemirror/view';
import { expect, test } from 'vitest';
import { addTokens, tokenTints } from '../../../../worker/site/editor/token-marks.ts';
import type { PlacedTokens } from '../../../../worker/site/tokens/placed-tokens.ts';

/** A text of tokens with these probabilities, in per cent, and its history. */
function tinted(...tokens: readonly (readonly [name: string, percent: number])[]) {
  let state = EditorState.create({ extensions: [history({ newGroupDelay: 0 }), tokenTints] });
  const dispatch = (transaction: Transaction) => {
    state = transaction.state;
  };
  let at = 0;
  const placed = tokens.map(([name, percent]): PlacedTokens => {
    const from = at;
    at += name.length;
    const token = { name, logprob: Math.log(percent / 100), id: null, alternatives: [] };
    return { from, to: at, tokens: [token] };
  });
  const text = tokens.map(([name]) => name).join('');
  dispatch(state.update({ changes: { from: 0, insert: text }, effects: addTokens.of(placed) }));
  return {
    type: (from: number, insert: string) => dispatch(state.update({ changes: { from, insert } })),
    undo: () => undo({ state, dispatch }),
    redo: () => redo({ state, dispatch }),
    /** Each tinted stretch, and its class. */
    get tints(): string[] {
      const tints: string[] = [];
      for (const marks of state.facet(EditorView.decorations))
        if (typeof marks !== 'function')
          marks.between(0, state.doc.length, (from, to, { spec }: Decoration) => {
            tints.push(`${state.sliceDoc(from, to)} ${spec.class}`);
          });
      return tints;
    },
  };
}

const STORY = [
  ['Once', 26],
  [' upon', 24],
  ['\n\n a', 12],
  [' time', 1],
] as const;

const STORY_TINTS = ['Once token s0', 'upon token s1', 'a token s2', 'time token s5'];

test('tints begin at two bits of surprise, and no white space before a word has one', () => {
  expect(tinted(...STORY).tints).toEqual(STORY_TINTS);
  expect(tinted(['a', 50], ['\n\n', 1]).tints).toEqual(['a token s0', '\n\n token s5']);
});

test('typing takes the tints after it, and undo and redo give them back and take them', () => {
  const text = tinted(...STORY);
  text.type(7, 'x');
  expect(text.tints).toEqual(['Once token s0']);
  text.undo();
  expect(text.tints).toEqual(STORY_TINTS);
  text.redo();
  expect(text.tints).toEqual(['Once token s0']);
});
