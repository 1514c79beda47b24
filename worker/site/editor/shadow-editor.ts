import { EditorView, type EditorViewConfig } from '@codemirror/view';

/**
 * Opens an editor in a shadow root. There, CodeMirror adopts its style sheets; elsewhere it adds `<style>`
 * elements, which the page's Content-Security-Policy forbids.
 */
export function openEditor(host: HTMLElement, config: EditorViewConfig): EditorView {
  const root = host.shadowRoot ?? host.attachShadow({ mode: 'open' });
  root.replaceChildren();
  return new EditorView({ ...config, root, parent: root });
}

/** The look that all editors share. */
export const editorTheme = EditorView.theme({
  '&': { height: '100%', background: 'transparent', color: 'var(--ink)' },
  '&.cm-focused': { outline: 'none' },
  '& .cm-scroller': { fontFamily: 'var(--mono)', lineHeight: 'inherit', overflow: 'auto' },
  '& .cm-content': { caretColor: 'var(--accent)' },
  '& .cm-cursor': { borderLeft: '2px solid var(--accent)' },
  '&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, & .cm-selectionBackground': {
    background: 'color-mix(in oklab, var(--accent) 28%, transparent)',
  },
});
