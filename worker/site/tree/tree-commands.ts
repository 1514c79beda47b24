import type { Alternative } from '../api/completion-stream.ts';
import { TOKEN_FIELDS } from '../api/whole-choices.ts';
import { focusFault } from '../controls/focus-fault.ts';
import { sentFields } from '../playground/request-body.ts';
import type { PlacedTokens } from '../tokens/placed-tokens.ts';
import { placedTokens, tokenBeside } from '../tokens/token-list.tsx';
import type { BranchPlace } from './branching.ts';
import { chooseTree } from './files/tree-files.ts';
import { newTree, nodeOf, ROOT, siblingOf, type TreeNode, walk } from './tree.ts';
import type { TreeEditor } from './tree-editor.ts';
import { addChildren, branchPoint, changeNode, typedNode } from './tree-edits.ts';
import type { TreeState } from './tree-state.ts';

/** What the visitor can do with the open tree. Keys and buttons call the same commands. */

/** Adds branches before the selected token; without one, at the end of the selected node. */
export function branch(state: TreeState, editor: TreeEditor): void {
  const { tree, selected } = editor.position.peek();
  const token = state.cursor.peek();
  const place = token === null ? { tree, id: selected } : branchPoint(tree, selected, token.from);
  branchFrom(state, editor, place);
}

/** Adds siblings to the selected node. */
export function branchAgain(state: TreeState, editor: TreeEditor): void {
  const { tree } = editor.position.peek();
  branchFrom(state, editor, { tree, id: editor.node.peek().parent ?? ROOT });
}

/** Puts an alternative in place of tokens of the selected node, in a new branch, and continues from it. */
export function branchWith(
  state: TreeState,
  editor: TreeEditor,
  placed: PlacedTokens,
  { name, logprob }: Alternative,
): void {
  const { tree, selected } = editor.position.peek();
  const { generation } = nodeOf(tree, selected);
  const point = branchPoint(tree, selected, placed.from);
  const replacement = {
    text: name,
    tokens: [{ ...placed.tokens[0]!, name, logprob, id: null, offset: 0 }],
    generation: generation && { ...generation, finishReason: null },
  };
  const replaced = addChildren(point.tree, point.id, [replacement]);
  branchFrom(state, editor, { tree: replaced, id: point.tree.nextId });
}

function branchFrom(state: TreeState, editor: TreeEditor, place: BranchPlace): void {
  if (focusFault()) return;
  const { session, n, parameters, branching } = state;
  state.cursor.value = null;
  void branching.branch(editor, place, {
    n: n.peek(),
    parameters: sentFields(TOKEN_FIELDS, parameters.peek()),
    connection: session.connection.peek(),
    model: session.model.peek(),
  });
}

/** Adds text that the visitor has written as a child of the selected node. */
export function write(editor: TreeEditor, text: string): void {
  const { tree, selected } = editor.position.peek();
  if (text !== '') editor.edit((tree) => addChildren(tree, selected, [typedNode(text)]), tree.nextId);
}

/** Whether the text of a node can be changed in place: it was typed, and no branch depends on it. */
export const isDraft = ({ children, generation }: TreeNode): boolean =>
  children.length === 0 && generation === null;

/** Changes the text of the selected node. If branches depend on it, adds a sibling instead. */
export function editText(editor: TreeEditor, text: string): void {
  const { tree, selected } = editor.position.peek();
  const node = nodeOf(tree, selected);
  if (text === node.text) return;
  if (isDraft(node)) editor.edit((tree) => changeNode(tree, selected, { text }));
  else if (node.parent !== null)
    editor.edit((tree) => addChildren(tree, node.parent!, [typedNode(text)]), tree.nextId);
}

export const nameNode = (editor: TreeEditor, name: string): void =>
  editor.edit((tree) => changeNode(tree, editor.position.peek().selected, { name }));

export const bookmark = (editor: TreeEditor): void => {
  const { id, bookmarked } = editor.node.peek();
  editor.edit((tree) => changeNode(tree, id, { bookmarked: !bookmarked }));
};

/** Selects the next bookmarked node in the order of the outline; after the last one, the first. */
export function nextBookmark(editor: TreeEditor): void {
  const { tree, selected } = editor.position.peek();
  const nodes = [...walk(tree)];
  const start = nodes.findIndex(({ id }) => id === selected) + 1;
  const order = [...nodes.slice(start), ...nodes.slice(0, start)];
  editor.select(order.find(({ bookmarked }) => bookmarked)?.id);
}

/** Selects the row `step` rows below. */
export function walkRows(editor: TreeEditor, step: number): void {
  const rows = editor.rows.peek();
  const index = rows.findIndex(({ node }) => node.id === editor.position.peek().selected);
  editor.select(rows[Math.min(rows.length - 1, Math.max(0, index + step))]?.node.id);
}

export const walkSiblings = (editor: TreeEditor, step: number): void =>
  editor.select(siblingOf(editor.position.peek().tree, editor.position.peek().selected, step));

/** Selects the next or previous token of the selected node. Beyond the ends, none is selected. */
export const walkTokens = ({ cursor }: TreeState, editor: TreeEditor, step: 1 | -1): void => {
  cursor.value = tokenBeside(placedTokens(editor.node.peek()), cursor.peek(), step);
};

export const toggleGraph = ({ graph }: TreeState): void => {
  graph.value = !graph.peek();
};

/** Opens a tree from a file that the visitor chooses. */
export async function importTree({ library, refused }: TreeState): Promise<void> {
  const chosen = await chooseTree();
  if (chosen === null) return;
  if ('tree' in chosen) library.add(chosen.tree);
  else refused.value = chosen.refused;
}

/** Adds a tree with one node and opens it. */
export const plant = ({ library }: TreeState, prompt: string): void =>
  library.add(newTree(nameFor(prompt), prompt));

/** Returns a name for a new tree: the beginning of its prompt. */
const nameFor = (prompt: string): string => {
  const [first = ''] = prompt.trim().split('\n', 1);
  return first.length <= 40 ? first || 'Tree' : `${first.slice(0, 39)}…`;
};
