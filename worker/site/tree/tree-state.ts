import { type Signal, signal } from '@preact/signals';
import { openDatabase } from '../store/database.ts';
import type { Session } from '../store/session.ts';
import { storedSignal } from '../store/stored-signal.ts';
import type { PlacedTokens } from '../tokens/placed-tokens.ts';
import { type Branching, createBranching } from './branching.ts';
import { openLibrary, type TreeLibrary } from './tree-library.ts';

/** Number of branches, and further fields of the request for them. */
export interface BranchSettings {
  readonly n: number;
  readonly parameters: Readonly<Record<string, unknown>>;
}

export type TreeDialog = 'keys' | 'name-node' | 'name-tree' | 'write' | 'edit' | 'delete-tree';

/** What the tree view works on. Lives as long as the page, so that branches grow on while other views are shown. */
export interface TreeState {
  readonly session: Session;
  readonly library: TreeLibrary;
  readonly branching: Branching;
  readonly settings: Signal<BranchSettings>;
  /** The selected token of the selected node. */
  readonly cursor: Signal<PlacedTokens | null>;
  readonly dialog: Signal<TreeDialog | null>;
  /** Why the last file was not imported. */
  readonly refused: Signal<string | null>;
}

const DEFAULT_SETTINGS: BranchSettings = {
  n: 4,
  parameters: { max_tokens: 24, temperature: 1, min_p: 0.05 },
};

let opened: Promise<TreeState> | null = null;

/** Opens the stored trees; later calls return the same state. */
export function openTrees(session: Session): Promise<TreeState> {
  opened ??= open(session);
  return opened;
}

async function open(session: Session): Promise<TreeState> {
  const [library, settings] = await Promise.all([
    openDatabase().then((database) => openLibrary(database)),
    storedSignal('tree-branching', DEFAULT_SETTINGS),
  ]);
  addEventListener('pagehide', library.flush);
  document.addEventListener('visibilitychange', library.flush);
  return {
    ...{ session, library, settings },
    branching: createBranching(),
    cursor: signal(null),
    dialog: signal(null),
    refused: signal(null),
  };
}
