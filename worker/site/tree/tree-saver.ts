import { effect, type Signal, signal } from '@preact/signals';
import type { Database } from '../store/database.ts';
import type { StoredPosition, TreeEditor } from './tree-editor.ts';
import { saveTree, type TreeRecord } from './tree-store.ts';

/** Longest time between a change and its writing. */
const WRITE_DELAY_MS = 200;

/** Writes the changes of one tree to the database. */
export class TreeSaver {
  /** Why changes are not kept; null = they are. */
  readonly fault: Signal<string | null> = signal(null);
  readonly #database: Database;
  readonly #now: () => number;
  readonly #onSave: (record: TreeRecord) => void;
  #editor: TreeEditor | null = null;
  /** What the database has of the tree; null = nothing, or unknown. */
  #saved: StoredPosition | null = null;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #unfollow = (): void => undefined;

  constructor(database: Database, now: () => number, onSave: (record: TreeRecord) => void) {
    this.#database = database;
    this.#now = now;
    this.#onSave = onSave;
  }

  /** Follows another tree. @param saved what the database has of it */
  follow(editor: TreeEditor, saved: StoredPosition | null): void {
    this.leave();
    this.#editor = editor;
    this.#saved = saved;
    this.#unfollow = effect(() => {
      if (differs(positionOf(editor), this.#saved)) this.#timer ??= setTimeout(this.flush, WRITE_DELAY_MS);
    });
  }

  /** Writes what waits, and follows no tree. */
  leave(): void {
    this.flush();
    this.forget();
  }

  /** Follows no tree, and drops what waits. */
  forget(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#unfollow();
    this.#editor = null;
  }

  /** Writes what waits now. */
  flush = (): void => {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#editor === null) return;
    const position = positionOf(this.#editor);
    if (!differs(position, this.#saved)) return;
    const record = recordOf(this.#editor.id, position, this.#now());
    const last = this.#saved?.tree ?? null;
    this.#saved = position;
    this.#onSave(record);
    saveTree(this.#database, record, last, position.tree).then(
      () => {
        this.fault.value = null;
      },
      (reason: unknown) => {
        this.#saved = null;
        this.fault.value = String(reason);
      },
    );
  };
}

const positionOf = ({ position, collapsed }: TreeEditor): StoredPosition => ({
  ...position.value,
  collapsed: collapsed.value,
});

function recordOf(id: string, { tree, selected, collapsed }: StoredPosition, changed: number): TreeRecord {
  const { name, nodes, nextId } = tree;
  return { id, name, size: nodes.size, nextId, selected, collapsed, changed };
}

const differs = (position: StoredPosition, saved: StoredPosition | null): boolean =>
  position.tree !== saved?.tree ||
  position.selected !== saved.selected ||
  position.collapsed !== saved.collapsed;
