import {
  type ChangeDesc,
  type EditorState,
  type Extension,
  RangeSet,
  StateEffect,
  StateField,
} from '@codemirror/state';
import { Decoration, EditorView } from '@codemirror/view';
import type { PlacedTokens } from '../tokens/placed-tokens.ts';
import { jointLogprob, TINT_LEVELS, tintClass } from '../tokens/probability.ts';

/** Tints the tokens of the text. A change takes the tints of everything after it, because it changes the probabilities. */

export const addTokens = StateEffect.define<readonly PlacedTokens[]>();
/** Outlines one range; null outlines none. */
export const selectTokens = StateEffect.define<{ readonly from: number; readonly to: number } | null>();

function tint({ from, to, tokens }: PlacedTokens) {
  // White space before a word hangs at the end of a line, where its tint would be a block of its own.
  const name = tokens[0]!.name;
  const lead = to - from === name.length ? Math.max(0, name.search(/\S/)) : 0;
  const mark = Decoration.mark({ class: tintClass(jointLogprob(tokens)), inclusive: false, tokens, lead });
  return mark.range(from + lead, to);
}

/** Keeps what ends before the first change. */
function beforeChange(marks: RangeSet<Decoration>, changes: ChangeDesc): RangeSet<Decoration> {
  let first = Number.POSITIVE_INFINITY;
  changes.iterChangedRanges((from) => {
    first = Math.min(first, from);
  });
  return marks.update({ filter: (_, to) => to <= first });
}

const tokenMarks = StateField.define<RangeSet<Decoration>>({
  create: () => RangeSet.empty,
  update(marks, transaction) {
    let next = transaction.docChanged ? beforeChange(marks, transaction.changes) : marks;
    for (const effect of transaction.effects) {
      if (effect.is(addTokens)) next = next.update({ add: effect.value.map(tint) });
    }
    return next;
  },
  provide: (field) => EditorView.decorations.from(field),
});

const selection = StateField.define<RangeSet<Decoration>>({
  create: () => RangeSet.empty,
  update(marked, transaction) {
    const chosen = transaction.effects.find((effect) => effect.is(selectTokens));
    if (chosen === undefined) return transaction.docChanged ? RangeSet.empty : marked;
    if (chosen.value === null) return RangeSet.empty;
    const { from, to } = chosen.value;
    return RangeSet.of(Decoration.mark({ class: 'selected' }).range(from, to));
  },
  provide: (field) => EditorView.decorations.from(field),
});

/** Returns all tinted tokens in the order of the text. */
export function placedTokens(state: EditorState): PlacedTokens[] {
  const placed: PlacedTokens[] = [];
  state.field(tokenMarks).between(0, state.doc.length, (from, to, mark) => {
    placed.push({ from: from - mark.spec.lead, to, tokens: mark.spec.tokens });
  });
  return placed;
}

/** Returns the tokens at a position between two characters: those after it. */
export function tokensAt(state: EditorState, position: number): PlacedTokens | null {
  let found: PlacedTokens | null = null;
  state.field(tokenMarks).between(position, position, (from, to, mark) => {
    if (from <= position && position < to)
      found = { from: from - mark.spec.lead, to, tokens: mark.spec.tokens };
  });
  return found;
}

const levels = TINT_LEVELS.map((level) => [`& .s${level}`, { '--level': String(level) }]);

const theme = EditorView.theme({
  '& .token': {
    borderRadius: '3px',
    padding: '2px 0',
    background: 'color-mix(in oklab, var(--surprise) calc(var(--level, 0) * 20%), transparent)',
  },
  ...Object.fromEntries(levels),
  '&.untinted .token, &.underlined .token': { background: 'none' },
  '&.underlined .token': {
    borderBottom: 'calc(var(--level, 0) * 1px) solid var(--accent)',
    borderRadius: '0',
  },
  '& .selected': { outline: '2px solid var(--accent)', borderRadius: '3px' },
});

export const tokenTints: Extension = [tokenMarks, selection, theme];
