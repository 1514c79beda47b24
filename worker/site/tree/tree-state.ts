import { type Signal, signal } from '@preact/signals';
import type { Parameters } from '../api/request-field.ts';
import { openDatabase } from '../store/database.ts';
import type { Session } from '../store/session.ts';
import { storedSignal, tabSignal } from '../store/stored-signal.ts';
import type { PlacedTokens } from '../tokens/placed-tokens.ts';
import { type Branching, createBranching } from './branching.ts';
import type { TreeEditor } from './tree-editor.ts';
import { openLibrary, type TreeLibrary } from './tree-library.ts';

export type TreeDialog = 'keys' | 'name-node' | 'name-tree' | 'write' | 'edit' | 'delete-tree' | 'parameters';

/** What the tree view works on. Lives as long as the page, so branches grow while other views show. */
export interface TreeState {
  readonly session: Session;
  readonly library: TreeLibrary;
  readonly branching: Branching;
  /** What the visitor has written for a new tree. */
  readonly prompt: Signal<string>;
  /** Number of branches per request. */
  readonly n: Signal<number>;
  /** Further fields of the request for branches. */
  readonly parameters: Signal<Parameters>;
  /** Whether the tree is shown as a graph instead of an outline. */
  readonly graph: Signal<boolean>;
  /** The selected token of the selected node. */
  readonly cursor: Signal<PlacedTokens | null>;
  readonly dialog: Signal<TreeDialog | null>;
  /** Why the last file was not imported. */
  readonly refused: Signal<string | null>;
}

/** What the parts of the view get: the state, and the open tree. */
export interface OpenTreeProps {
  readonly state: TreeState;
  readonly editor: TreeEditor;
}

export const DEFAULT_N = 4;
const DEFAULT_PARAMETERS: Parameters = { max_tokens: 24, temperature: 1, min_p: 0.05 };

let opened: Promise<TreeState> | null = null;

/** Opens the stored trees; later calls return the same state. */
export function openTrees(session: Session): Promise<TreeState> {
  opened ??= open(session);
  return opened;
}

async function open(session: Session): Promise<TreeState> {
  const [library, prompt, n, parameters, graph] = await Promise.all([
    openDatabase().then((database) => openLibrary(database)),
    tabSignal('tree-prompt', ''),
    storedSignal('tree-n', DEFAULT_N),
    storedSignal('tree-parameters', DEFAULT_PARAMETERS),
    storedSignal('tree-graph', false),
  ]);
  addEventListener('pagehide', library.saver.flush);
  document.addEventListener('visibilitychange', library.saver.flush);
  return {
    session,
    library,
    prompt,
    n,
    parameters,
    graph,
    branching: createBranching(),
    cursor: signal(null),
    dialog: signal(null),
    refused: signal(null),
  };
}
