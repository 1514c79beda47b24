import { isOverlaid } from '../controls/dialog.tsx';
import { ROOT } from './tree.ts';
import * as commands from './tree-commands.ts';
import type { TreeEditor } from './tree-editor.ts';
import type { TreeState } from './tree-state.ts';

export interface KeyBinding {
  /** Values of `KeyboardEvent.key`; `Ctrl+` stands for Ctrl or ⌘. */
  readonly keys: readonly string[];
  readonly does: string;
  run(state: TreeState, editor: TreeEditor, key: string): void;
}

const open = (dialog: NonNullable<TreeState['dialog']['value']>) => (state: TreeState) => {
  state.dialog.value = dialog;
};

/** All keys of the tree view, in the order in which the list of keys shows them. */
export const KEY_BINDINGS: readonly KeyBinding[] = [
  { keys: ['ArrowUp'], does: 'Row above', run: (_, editor) => commands.walkRows(editor, -1) },
  { keys: ['ArrowDown'], does: 'Row below', run: (_, editor) => commands.walkRows(editor, 1) },
  { keys: ['ArrowLeft', 'h'], does: 'Parent', run: (_, editor) => editor.select(editor.node.peek().parent) },
  {
    keys: ['ArrowRight', 'l'],
    does: 'Child',
    run: (_, editor) => editor.select(editor.childOf(editor.node.peek().id)),
  },
  { keys: ['k'], does: 'Sibling above', run: (_, editor) => commands.walkSiblings(editor, -1) },
  { keys: ['j'], does: 'Sibling below', run: (_, editor) => commands.walkSiblings(editor, 1) },
  {
    keys: ['1', '2', '3', '4', '5', '6', '7', '8', '9'],
    does: 'Branch by number',
    run: (_, editor, key) => editor.select(editor.node.peek().children[Number(key) - 1]),
  },
  { keys: ['Home'], does: 'First row', run: (_, editor) => editor.select(ROOT) },
  {
    keys: ['End'],
    does: 'Last row',
    run: (_, editor) => editor.select(editor.rows.peek().at(-1)?.node.id),
  },
  { keys: [' '], does: 'Fold or unfold', run: (_, editor) => editor.fold(editor.node.peek().id) },
  { keys: ['['], does: 'Token before', run: (state, editor) => commands.walkTokens(state, editor, -1) },
  { keys: [']'], does: 'Token after', run: (state, editor) => commands.walkTokens(state, editor, 1) },
  {
    keys: ['g', 'Enter', 'Ctrl+Enter'],
    does: 'Branch here',
    run: commands.branch,
  },
  { keys: ['r'], does: 'More siblings', run: commands.branchAgain },
  {
    keys: ['Escape'],
    does: 'Stop, deselect',
    run: (state) => {
      state.cursor.value = null;
      state.branching.stop();
    },
  },
  { keys: ['w'], does: 'Write text', run: open('write') },
  { keys: ['e'], does: 'Edit the text', run: open('edit') },
  { keys: ['n'], does: 'Name the node', run: open('name-node') },
  { keys: ['p'], does: 'Parameters', run: open('parameters') },
  { keys: ['v'], does: 'Outline or graph', run: commands.toggleGraph },
  { keys: ['b'], does: 'Bookmark', run: (_, editor) => commands.bookmark(editor) },
  { keys: ['m'], does: 'Next bookmark', run: (_, editor) => commands.nextBookmark(editor) },
  { keys: ['x', 'Delete'], does: 'Prune the node', run: (_, editor) => editor.prune(editor.node.peek().id) },
  { keys: ['Ctrl+z'], does: 'Undo', run: (_, editor) => editor.undo() },
  { keys: ['Ctrl+Z', 'Ctrl+y'], does: 'Redo', run: (_, editor) => editor.redo() },
  { keys: ['?'], does: 'Keys', run: open('keys') },
];

const NAMES: Readonly<Record<string, string>> = {
  ArrowUp: '↑',
  ArrowDown: '↓',
  ArrowLeft: '←',
  ArrowRight: '→',
  ' ': 'Space',
  Escape: 'Esc',
  Delete: 'Del',
  'Ctrl+z': 'Ctrl Z',
  'Ctrl+Z': 'Ctrl Shift Z',
  'Ctrl+y': 'Ctrl Y',
};

/** Returns keys as people name them, many in a row as a range. */
export const shown = (keys: KeyBinding['keys']): string =>
  (keys.length > 4 ? [keys[0]!, '…', keys.at(-1)!] : keys)
    .map((key) => NAMES[key] ?? key.replace('+', ' '))
    .join('  ');

const BY_KEY = new Map(KEY_BINDINGS.flatMap((binding) => binding.keys.map((key) => [key, binding])));

/** Elements that use keys themselves. */
const OWN_KEYS = 'input, textarea, select';
/** Keys that press the focused button. */
const PRESSES = new Set(['Enter', ' ']);

/** Returns what a key does in the tree view; undefined = nothing. */
export function bindingOf(event: KeyboardEvent): KeyBinding | undefined {
  const target = event.target instanceof Element ? event.target : null;
  if (event.altKey || isOverlaid() || target?.closest(OWN_KEYS)) return undefined;
  if (PRESSES.has(event.key) && target?.closest('button, a')) return undefined;
  const modifier = event.ctrlKey || event.metaKey ? 'Ctrl+' : '';
  return BY_KEY.get(modifier + event.key);
}
