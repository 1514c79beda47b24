import { defaultKeymap, history, historyKeymap } from '@codemirror/commands';
import { json } from '@codemirror/lang-json';
import { bracketMatching } from '@codemirror/language';
import { type Diagnostic, lintGutter, setDiagnostics } from '@codemirror/lint';
import { EditorState } from '@codemirror/state';
import { EditorView, keymap, lineNumbers } from '@codemirror/view';
import { editorTheme, openEditor } from '../editor/shadow-editor.ts';
import { errorPlace } from './error-place.ts';

const theme = EditorView.theme({
  '& .cm-gutters': { background: 'transparent', border: '0', color: 'var(--grey)' },
  '& .cm-lintRange-error': {
    backgroundImage: 'none',
    background: 'var(--red-wash)',
    textDecoration: 'underline wavy var(--red)',
  },
  '& .cm-tooltip': { background: 'var(--surface)', border: '1px solid var(--line)', color: 'var(--ink)' },
});

/** An editor of a schema, a grammar or a regular expression that marks the place of an error. */
export class CodeEditor {
  readonly #view: EditorView;

  constructor(host: HTMLElement, source: string, isJson: boolean, onChange: (source: string) => void) {
    this.#view = openEditor(host, {
      state: EditorState.create({
        doc: source,
        extensions: [
          history(),
          keymap.of([...historyKeymap, ...defaultKeymap]),
          lineNumbers(),
          lintGutter(),
          bracketMatching(),
          EditorView.lineWrapping,
          EditorView.contentAttributes.of({ 'aria-label': 'Constraint', spellcheck: 'false', tabindex: '0' }),
          ...(isJson ? [json()] : []),
          editorTheme,
          theme,
          EditorView.updateListener.of((update) => {
            if (update.docChanged) onChange(update.state.doc.toString());
          }),
        ],
      }),
    });
  }

  /** Marks the place that a message names; null removes the mark. */
  showError(message: string | null): void {
    const { state } = this.#view;
    const marks: Diagnostic[] =
      message === null ? [] : [{ ...errorPlace(state.doc.toString(), message), severity: 'error', message }];
    this.#view.dispatch(setDiagnostics(state, marks));
  }

  destroy(): void {
    this.#view.destroy();
  }
}
