import { type EditorState, type Extension, StateEffect, StateField } from '@codemirror/state';
import { Decoration, EditorView, WidgetType } from '@codemirror/view';

/** The place where an infill goes: the text before it is the prompt, the text after it the suffix. */

export const placeMark = StateEffect.define<number | null>();

const mark = StateField.define<number | null>({
  create: () => null,
  update(position, transaction) {
    const placed = transaction.effects.find((effect) => effect.is(placeMark));
    if (placed) return placed.value;
    // The mark stays behind text that is inserted at it.
    return position === null ? null : transaction.changes.mapPos(position, 1);
  },
  provide: (field) =>
    EditorView.decorations.from(field, (position) =>
      position === null
        ? Decoration.none
        : Decoration.set(Decoration.widget({ widget: new MarkWidget(), side: 1 }).range(position)),
    ),
});

class MarkWidget extends WidgetType {
  override toDOM(): HTMLElement {
    const element = document.createElement('span');
    element.className = 'insertion-mark';
    element.textContent = 'insert here';
    return element;
  }

  override eq(): boolean {
    return true;
  }
}

export const markPosition = (state: EditorState): number | null => state.field(mark);

const theme = EditorView.theme({
  '& .insertion-mark': {
    margin: '0 2px',
    padding: '2px 8px',
    borderRadius: '4px',
    background: 'var(--accent)',
    color: 'var(--on-accent)',
    font: '600 11px / 16px var(--interface)',
    verticalAlign: '2px',
    userSelect: 'none',
  },
});

export const insertionMark: Extension = [mark, theme];
