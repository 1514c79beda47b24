import {
  defaultKeymap,
  history,
  historyKeymap,
  isolateHistory,
  redo,
  redoDepth,
  undo,
  undoDepth,
} from '@codemirror/commands';
import { type Annotation, Compartment, EditorState, Prec, Transaction } from '@codemirror/state';
import {
  drawSelection,
  EditorView,
  highlightSpecialChars,
  highlightWhitespace,
  type KeyBinding,
  keymap,
} from '@codemirror/view';
import type { TokenDisplay } from '../store/session.ts';
import { leadOf, type PlacedTokens } from '../tokens/placed-tokens.ts';
import { signOf, UNSEEN_IN_LINE } from '../tokens/white-space.ts';
import { type BesideChange, besideHistory, changeBeside } from './beside-history.ts';
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
  /** The mouse is over tokens, or over none. */
  readonly onHover: (tokens: PlacedTokens | null) => void;
  /** A finger has touched tokens, or none. */
  readonly onTap: (tokens: PlacedTokens | null) => void;
  /** Text has moved in the window. */
  readonly onMove: () => void;
}

/** The text of the playground: prompt and completions in one, with tinted tokens and a history of changes. */
export class TextEditor {
  readonly #view: EditorView;
  readonly #readOnly = new Compartment();
  readonly #display = new Compartment();
  #isFirstOfStep = false;
  /** Place of the cursor while it waits for the end of a completion; null = it is elsewhere in the text. */
  #waiting: number | null = null;

  constructor(host: HTMLElement, options: TextEditorOptions) {
    const { content, keys, onChange, onMove } = options;
    this.#view = openEditor(host, {
      state: EditorState.create({
        doc: content.text,
        extensions: [
          history(),
          Prec.high(keymap.of([...keys])),
          keymap.of([...historyKeymap, ...defaultKeymap]),
          drawSelection(),
          EditorView.lineWrapping,
          // A model may write \r\n: its length must stay. Pasted text has the breaks that are usual here.
          EditorState.lineSeparator.of('\n'),
          EditorView.clipboardInputFilter.of((text) => text.replace(/\r\n?/g, '\n')),
          EditorView.contentAttributes.of({ 'aria-label': 'Text', spellcheck: 'false', tabindex: '0' }),
          typingOver,
          tokenTints,
          insertionMark,
          besideHistory,
          editorTheme,
          measure,
          this.#readOnly.of([]),
          this.#display.of([]),
          EditorView.updateListener.of((update) => {
            const moved = update.transactions.some(({ effects }) => effects.length > 0);
            if (update.docChanged || moved) onChange();
            if (update.geometryChanged) onMove();
          }),
          pointing(options),
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

  /**
   * Replaces the whole text, as one step of the history.
   * @param beside what changes with it, and is undone with it
   */
  setText(text: string, tokens: readonly PlacedTokens[] = [], beside?: BesideChange): void {
    this.beginStep();
    this.#view.dispatch({
      changes: { from: 0, to: this.#view.state.doc.length, insert: text },
      annotations: this.#stepAnnotations(),
      ...(beside && { effects: changeBeside.of(beside) }),
    });
    this.#view.dispatch({ effects: addTokens.of(tokens), selection: { anchor: text.length } });
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

  /**
   * Inserts generated text and shows it. A cursor in front of it moves behind it in the end: each move costs
   * a layout.
   */
  append(at: number, text: string, tokens: readonly PlacedTokens[]): void {
    const { head } = this.#view.state.selection.main;
    if (this.#waiting === null && head === at) this.#waiting = at;
    const follow = EditorView.scrollIntoView(at + text.length);
    this.#view.dispatch({
      changes: { from: at, insert: text },
      effects: [addTokens.of(tokens), ...(head === this.#waiting ? [follow] : [])],
      annotations: this.#stepAnnotations(),
    });
  }

  /** Makes the text editable again. @param end of the generated text */
  endStep(end: number): void {
    const follows = this.#view.state.selection.main.head === this.#waiting;
    this.#waiting = null;
    this.#isFirstOfStep = false;
    this.#view.dispatch({
      annotations: isolateHistory.of('after'),
      effects: this.#readOnly.reconfigure([]),
      ...(follows && { selection: { anchor: end }, scrollIntoView: true }),
    });
  }

  placeMark(position: number | null): void {
    this.#view.dispatch({ effects: placeMark.of(position) });
  }

  /** Tints tokens of text that is there already. */
  tint(tokens: readonly PlacedTokens[]): void {
    this.#view.dispatch({ effects: addTokens.of(tokens) });
  }

  /** Outlines tokens, and scrolls to them, wherever the cursor is. */
  select(tokens: PlacedTokens | null): void {
    const show = tokens === null ? [] : [EditorView.scrollIntoView(tokens.to - 1)];
    this.#view.dispatch({ effects: [selectTokens.of(tokens), ...show] });
  }

  /** Whether tokens are still where they were. */
  has = ({ to, tokens }: PlacedTokens): boolean => tokensAt(this.#view.state, to - 1)?.tokens === tokens;

  /** Returns where tokens begin; null while that is not in view. */
  rectOf({ from, to }: PlacedTokens): Pick<DOMRect, 'left' | 'top' | 'bottom'> | null {
    const start = this.#view.coordsAtPos(from + leadOf(this.#view.state.sliceDoc(from, to)), 1);
    const { top, bottom } = this.#view.scrollDOM.getBoundingClientRect();
    return start === null || start.bottom < top || start.top > bottom ? null : start;
  }

  undo = (): boolean => undo(this.#view);
  redo = (): boolean => redo(this.#view);

  get canUndo(): boolean {
    return undoDepth(this.#view.state) > 0;
  }

  get canRedo(): boolean {
    return redoDepth(this.#view.state) > 0;
  }

  focus(): void {
    this.#view.focus();
  }

  /** Keeps the visitor's changes out until `endStep`. */
  lock(): void {
    this.#view.dispatch({ effects: this.#readOnly.reconfigure(EditorState.readOnly.of(true)) });
  }

  setDisplay({ tint, whiteSpace }: TokenDisplay): void {
    const name = { background: '', underline: 'underlined', none: 'untinted' }[tint];
    this.#view.dispatch({
      effects: this.#display.reconfigure([
        EditorView.editorAttributes.of({ class: name }),
        whiteSpace ? shownWhiteSpace : [],
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

/** Signs for spaces, tabs, line breaks and characters without width. */
const shownWhiteSpace = [
  highlightWhitespace(),
  highlightSpecialChars({
    specialChars: UNSEEN_IN_LINE,
    render: (code, description) => {
      const sign = document.createElement('span');
      sign.className = 'unseen';
      sign.title = description ?? '';
      sign.textContent = signOf(String.fromCodePoint(code));
      return sign;
    },
  }),
  EditorView.theme({
    '& .cm-line:not(:last-child)::after': { content: '"↵"', color: 'var(--grey)' },
    '& .unseen': { color: 'var(--grey)' },
    // Forced colours have no background images, which are the signs of spaces and tabs.
    '@media (forced-colors: active)': {
      '.cm-highlightSpace::before': { content: '"·"', position: 'absolute' },
      '.cm-highlightTab::before': { content: '"→"', position: 'absolute' },
    },
  }),
];

/** Replaces a selection by what is typed. Chromium itself needs 30 s for the elements of 1,500 tokens. */
const typingOver = EditorView.domEventHandlers({
  beforeinput: (event, view) => {
    const { state } = view;
    const { inputType, data, isComposing } = event;
    if (inputType !== 'insertText' || data === null || isComposing) return false;
    if (state.readOnly || state.selection.main.empty) return false;
    view.dispatch({ ...state.replaceSelection(data), userEvent: 'input.type', scrollIntoView: true });
    event.preventDefault();
    return true;
  },
});

/** Reports the tokens under the mouse or a finger. A lifted finger leaves, what it opened stays. */
const pointing = ({ onHover, onTap, onMove }: TextEditorOptions) =>
  EditorView.domEventHandlers({
    pointermove: (event, view) => {
      if (event.pointerType === 'mouse' && event.buttons === 0) onHover(tokensUnder(view, event));
    },
    pointerup: (event, view) => {
      if (event.pointerType !== 'mouse') onTap(tokensUnder(view, event));
    },
    pointerleave: (event) => {
      if (event.pointerType === 'mouse') onHover(null);
    },
    wheel: () => onHover(null),
    scroll: onMove,
  });

/** The element tells which tokens: the position nearest to a point may be the one behind them. */
function tokensUnder(view: EditorView, event: PointerEvent): PlacedTokens | null {
  const element = (event.composedPath()[0] as Element | undefined)?.closest?.('.token');
  return element ? tokensAt(view.state, view.posAtDOM(element)) : null;
}
