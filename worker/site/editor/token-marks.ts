import { invertedEffects } from '@codemirror/commands';
import {
  type ChangeDesc,
  type EditorState,
  type Extension,
  RangeSet,
  StateEffect,
  StateField,
} from '@codemirror/state';
import { Decoration, EditorView } from '@codemirror/view';
import { leadOf, type PlacedTokens } from '../tokens/placed-tokens.ts';
import { jointLogprob, TINT_LEVELS, tintClass } from '../tokens/probability.ts';

/**
 * Tints the tokens of the text. A change takes the tints of everything after it, because it changes the
 * probabilities.
 */

/** Tints tokens in the order of the text, in place of all tints between the first and the last of them. */
export const addTokens = StateEffect.define<readonly PlacedTokens[]>({
  map: (placed, changes) =>
    placed
      .map((place) => ({
        ...place,
        from: changes.mapPos(place.from, 1),
        to: changes.mapPos(place.to, -1),
      }))
      .filter(({ from, to }) => from < to),
});
/** Outlines one range; null outlines none. */
export const selectTokens = StateEffect.define<{ readonly from: number; readonly to: number } | null>();

function tint({ from, to, tokens, run }: PlacedTokens) {
  const name = tokens[0]!.name;
  const lead = to - from === name.length ? leadOf(name) : 0;
  const mark = Decoration.mark({
    class: tintClass(jointLogprob(tokens)),
    inclusive: false,
    tokens,
    lead,
    run,
  });
  // The view compares all marks of a line at each change of it. Comparing their attributes took a third of
  // its time.
  mark.eq = (value) => value === mark;
  return mark.range(from + lead, to);
}

/** Start of the first change. */
function firstChange(changes: ChangeDesc): number {
  let first = Number.POSITIVE_INFINITY;
  changes.iterChangedRanges((from) => {
    first = Math.min(first, from);
  });
  return first;
}

/** Keeps what ends before the first change. */
function beforeChange(marks: RangeSet<Decoration>, changes: ChangeDesc): RangeSet<Decoration> {
  const first = firstChange(changes);
  // Without `filterFrom`, the whole set would be new, and the view would compare all of it.
  return marks.update({ filterFrom: first, filter: (_, to) => to <= first });
}

function withTokens(marks: RangeSet<Decoration>, added: readonly PlacedTokens[]): RangeSet<Decoration> {
  const [first, last] = [added[0], added.at(-1)];
  if (first === undefined || last === undefined) return marks;
  return marks.update({
    filterFrom: first.from,
    filterTo: last.to,
    filter: (from, to) => to <= first.from || from >= last.to,
    add: added.map(tint),
  });
}

const tokenMarks = StateField.define<RangeSet<Decoration>>({
  create: () => RangeSet.empty,
  update(marks, transaction) {
    let next = transaction.docChanged ? beforeChange(marks, transaction.changes) : marks;
    for (const effect of transaction.effects) {
      if (effect.is(addTokens)) next = withTokens(next, effect.value);
    }
    return next;
  },
  provide: (field) => EditorView.decorations.from(field),
});

const selection = StateField.define<RangeSet<Decoration>>({
  create: () => RangeSet.empty,
  update(marked, transaction) {
    const chosen = transaction.effects.find((effect) => effect.is(selectTokens));
    if (chosen === undefined)
      return transaction.docChanged ? beforeChange(marked, transaction.changes) : marked;
    if (chosen.value === null) return RangeSet.empty;
    const { from: start, to } = chosen.value;
    const from = start + leadOf(transaction.newDoc.sliceString(start, to));
    return RangeSet.of(Decoration.mark({ class: 'selected' }).range(from, to));
  },
  provide: (field) => EditorView.decorations.from(field),
});

const placeOf = (from: number, to: number, { spec: { lead, tokens, run } }: Decoration): PlacedTokens => ({
  from: from - lead,
  to,
  tokens,
  ...(run !== undefined && { run }),
});

/** Returns the tinted tokens that end after a position, in the order of the text. */
export function placedTokens(state: EditorState, start = 0): PlacedTokens[] {
  const placed: PlacedTokens[] = [];
  state.field(tokenMarks).between(start, state.doc.length, (from, to, mark) => {
    if (to > start) placed.push(placeOf(from, to, mark));
  });
  return placed;
}

/** Undo and redo give back the tints that a change takes. */
const tintHistory = invertedEffects.of(({ docChanged, changes, startState }) => {
  const taken = docChanged ? placedTokens(startState, firstChange(changes)) : [];
  return taken.length === 0 ? [] : [addTokens.of(taken)];
});

/** Returns the tokens at a position between two characters: those after it. */
export function tokensAt(state: EditorState, position: number): PlacedTokens | null {
  let place: PlacedTokens | null = null;
  state.field(tokenMarks).between(position, position, (from, to, mark) => {
    if (from <= position && position < to) place = placeOf(from, to, mark);
  });
  return place;
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
  '&.untinted .token': { borderBottom: '0' },
  '&.underlined .token': {
    borderBottom: 'calc(var(--level, 0) * 1px) solid var(--accent)',
    borderRadius: '0',
  },
  // Forced colours replace all backgrounds.
  '@media (forced-colors: active)': {
    '.token': { borderBottom: 'calc(var(--level, 0) * 1px) solid', borderRadius: '0' },
  },
  '& .selected': { outline: '2px solid var(--accent)', borderRadius: '3px' },
});

export const tokenTints: Extension = [tokenMarks, tintHistory, selection, theme];
