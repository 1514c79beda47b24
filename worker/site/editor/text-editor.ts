import {
  defaultKeymap,
  history,
  historyKeymap,
  isolateHistory,
  redo,
  undo,
  undoDepth,
} from '@codemirror/commands';
import { type Annotation, Compartment, EditorState, Prec, Transaction } from '@codemirror/state';
import { drawSelection, EditorView, highlightWhitespace, type KeyBinding, keymap } from '@codemirror/view';
import type { TokenDisplay } from '../store/session.ts';
import type { PlacedTokens } from '../tokens/placed-tokens.ts';
import { insertionMark, markPosition, placeMark } from './insertion-mark.ts';
import { editorTheme, openEditor } from './shadow-editor.ts';
import { addTokens, placedTokens, selectTokens, tokensAt, tokenTints } from './token-marks.ts';

/** What the editor holds. It survives a reload. */
export interface EditorContent {
  readonly text: string;
  readonly tokens: readonly PlacedTokens[];
  /** Position of the insertion point of an infill; null = the text is continued at its end. */
  readonly mark: number | null;
}

export interface TextEditorOptions {
  readonly content: EditorContent;
  readonly keys: readonly KeyBinding[];
  readonly onChange: () => void;
  /** The pointer is over tokens, or over none. */
  readonly onPoint: (tokens: PlacedTokens | null) => void;
}

/** The text of the playground: prompt and completions in one, with tinted tokens and a history of changes. */
export class TextEditor {
  readonly #view: EditorView;
  readonly #readOnly = new Compartment();
  readonly #display = new Compartment();
  #isFirstOfStep = false;

  constructor(host: HTMLElement, { content, keys, onChange, onPoint }: TextEditorOptions) {
    this.#view = openEditor(host, {
      state: EditorState.create({
        doc: content.text,
        extensions: [
          history(),
          Prec.high(keymap.of([...keys])),
          keymap.of([...historyKeymap, ...defaultKeymap]),
          drawSelection(),
          EditorView.lineWrapping,
          EditorView.contentAttributes.of({ 'aria-label': 'Text', spellcheck: 'false', tabindex: '0' }),
          tokenTints,
          insertionMark,
          editorTheme,
          measure,
          this.#readOnly.of([]),
          this.#display.of([]),
          EditorView.updateListener.of((update) => {
            const moved = update.transactions.some(({ effects }) => effects.length > 0);
            if (update.docChanged || moved) onChange();
          }),
          pointing(onPoint),
        ],
      }),
    });
    this.#restore(content);
  }

  /** Tokens and mark of a stored text; ignores what does not fit it. */
  #restore({ text, tokens, mark }: EditorContent): void {
    const fitting = tokens.filter(({ from, to }) => from < to && to <= text.length);
    this.#view.dispatch({
      effects: [addTokens.of(fitting), placeMark.of(mark !== null && mark <= text.length ? mark : null)],
    });
  }

  get content(): EditorContent {
    const { state } = this.#view;
    return { text: state.doc.toString(), tokens: placedTokens(state), mark: markPosition(state) };
  }

  get cursor(): number {
    return this.#view.state.selection.main.head;
  }

  /** Replaces the whole text, as one step of the history. */
  setText(text: string): void {
    this.beginStep();
    this.replace(0, this.#view.state.doc.length, text);
    this.#view.dispatch({ selection: { anchor: text.length } });
  }

  replace(from: number, to: number, text: string): void {
    this.#view.dispatch({ changes: { from, to, insert: text }, annotations: this.#stepAnnotations() });
  }

  /** Makes all changes until `endStep` one step of the history. */
  beginStep(): void {
    this.#isFirstOfStep = true;
  }

  /** The history joins events of composed input, however much later they come. */
  #stepAnnotations(): Annotation<unknown>[] {
    const isFirst = this.#isFirstOfStep;
    this.#isFirstOfStep = false;
    return isFirst
      ? [isolateHistory.of('before'), Transaction.userEvent.of('input.complete')]
      : [Transaction.userEvent.of('input.type.compose')];
  }

  /** Inserts generated text. */
  append(at: number, text: string, tokens: readonly PlacedTokens[]): void {
    const end = at + text.length;
    const follow = this.#view.state.selection.main.head === at;
    this.#view.dispatch({
      changes: { from: at, insert: text },
      effects: addTokens.of(tokens),
      annotations: this.#stepAnnotations(),
      ...(follow && { selection: { anchor: end } }),
      scrollIntoView: follow,
    });
  }

  endStep(): void {
    this.#isFirstOfStep = false;
    this.#view.dispatch({ annotations: isolateHistory.of('after') });
  }

  placeMark(position: number | null): void {
    this.#view.dispatch({ effects: placeMark.of(position) });
  }

  /** Tints tokens of text that is there already. */
  tint(tokens: readonly PlacedTokens[]): void {
    this.#view.dispatch({ effects: addTokens.of(tokens) });
  }

  select(tokens: PlacedTokens | null): void {
    this.#view.dispatch({ effects: selectTokens.of(tokens), ...(tokens && { scrollIntoView: true }) });
  }

  /** Returns where tokens are shown; null while they are not in view. */
  rectOf({ from, to }: PlacedTokens): DOMRect | null {
    const start = this.#view.coordsAtPos(from, 1);
    const end = this.#view.coordsAtPos(to, -1);
    if (start === null || end === null) return null;
    const sameLine = start.top === end.top;
    return new DOMRect(
      start.left,
      start.top,
      sameLine ? end.right - start.left : 0,
      start.bottom - start.top,
    );
  }

  undo = (): boolean => undo(this.#view);
  redo = (): boolean => redo(this.#view);

  get canUndo(): boolean {
    return undoDepth(this.#view.state) > 0;
  }

  focus(): void {
    this.#view.focus();
  }

  setReadOnly(readOnly: boolean): void {
    this.#view.dispatch({ effects: this.#readOnly.reconfigure(EditorState.readOnly.of(readOnly)) });
  }

  setDisplay({ tint, whiteSpace }: TokenDisplay): void {
    const name = { background: '', underline: 'underlined', none: 'untinted' }[tint];
    this.#view.dispatch({
      effects: this.#display.reconfigure([
        EditorView.editorAttributes.of({ class: name }),
        whiteSpace ? highlightWhitespace() : [],
      ]),
    });
  }

  destroy(): void {
    this.#view.destroy();
  }
}

/** Lines of at most 76 characters, in the middle of the panel. */
const measure = EditorView.theme({
  '& .cm-content': { padding: '24px max(24px, calc((100% - 76ch) / 2))' },
  '& .cm-line': { padding: '0' },
});

/** Reports the tokens under the pointer, and with a touch those under the finger. */
function pointing(onPoint: TextEditorOptions['onPoint']) {
  const report = (event: PointerEvent, view: EditorView) => {
    const position = view.posAtCoords({ x: event.clientX, y: event.clientY }, false);
    const tokens = tokensUnder(view, event, position);
    onPoint(tokens);
    return false;
  };
  return EditorView.domEventHandlers({
    pointermove: (event, view) => event.buttons === 0 && report(event, view),
    pointerup: (event, view) => event.pointerType !== 'mouse' && report(event, view),
    pointerleave: () => {
      onPoint(null);
    },
    wheel: () => {
      onPoint(null);
    },
  });
}

/** Beside a line's end, the nearest position is not under the pointer. */
function tokensUnder(view: EditorView, event: PointerEvent, position: number): PlacedTokens | null {
  const isToken = (event.composedPath()[0] as Element | undefined)?.closest?.('.token');
  if (!isToken) return null;
  // The nearest position may be at the other side of the character.
  const rect = view.coordsAtPos(position, 1);
  const before = rect !== null && event.clientX < rect.left;
  return tokensAt(view.state, before ? position - 1 : position);
}
