import { type Signal, signal } from '@preact/signals';
import type { Database } from '../store/database.ts';
import { lockForPage } from '../store/page-lock.ts';
import { ROOT, type Tree } from './tree.ts';
import { createEditor, type StoredPosition, type TreeEditor } from './tree-editor.ts';
import { TreeSaver } from './tree-saver.ts';
import { deleteTree, listTrees, loadTree, type TreeRecord } from './tree-store.ts';

type Lock = ReturnType<typeof lockForPage>;

const NO_LOCK: Lock = Promise.resolve(null);

const lockOf = (id: string): Lock => lockForPage(`continuo-tree-${id}`);

/** Browsers have no `crypto.randomUUID` on pages from another host over plain HTTP. */
const randomId = (): string => crypto.getRandomValues(new BigUint64Array(2)).join('-');

/** All trees of this browser, and the one that is open. */
export class TreeLibrary {
  readonly records: Signal<readonly TreeRecord[]>;
  /** Null while the visitor starts a tree. */
  readonly editor: Signal<TreeEditor | null> = signal(null);
  /** Name of the tree that was not opened because another tab has it; null = none. */
  readonly inOtherTab: Signal<string | null> = signal(null);
  readonly saver: TreeSaver;
  readonly #database: Database;
  readonly #newId: () => string;
  /** Of the open tree. */
  #lock = NO_LOCK;

  constructor(
    database: Database,
    records: readonly TreeRecord[],
    now: () => number = Date.now,
    newId: () => string = randomId,
  ) {
    this.records = signal(records);
    this.saver = new TreeSaver(database, now, (record) => this.#replace(record));
    this.#database = database;
    this.#newId = newId;
  }

  /** Opens a tree, unless another tab has it: two tabs would overwrite each other's changes. */
  async open(id: string): Promise<void> {
    this.saver.flush();
    const lock = lockOf(id);
    const unlock = await lock;
    // Other tabs may have changed the trees.
    this.records.value = await listTrees(this.#database);
    const record = this.records.peek().find((kept) => kept.id === id);
    if (unlock === null) {
      this.inOtherTab.value = record?.name ?? null;
      return;
    }
    const stored = record ? await loadTree(this.#database, record) : null;
    if (stored) this.#show(createEditor(id, stored), stored, lock);
    else unlock();
  }

  /** Adds a tree and opens it. */
  add(tree: Tree): void {
    const id = this.#newId();
    const editor = createEditor(id, { tree, selected: ROOT, collapsed: new Set() });
    this.#show(editor, null, lockOf(id));
    this.saver.flush();
  }

  /** Closes the open tree, so that the visitor can start another. */
  close = (): void => {
    this.saver.leave();
    this.editor.value = null;
    this.#hold(NO_LOCK);
  };

  /** Removes the open tree and opens another. */
  async remove(): Promise<void> {
    const removed = this.editor.peek();
    if (removed === null) return;
    this.saver.forget();
    this.editor.value = null;
    this.records.value = this.records.peek().filter(({ id }) => id !== removed.id);
    await deleteTree(this.#database, removed.id);
    this.#hold(NO_LOCK);
    const [next] = this.records.peek();
    if (next) await this.open(next.id);
  }

  #show(editor: TreeEditor, saved: StoredPosition | null, lock: Lock): void {
    this.saver.follow(editor, saved);
    this.#hold(lock);
    this.inOtherTab.value = null;
    this.editor.value = editor;
  }

  /** Keeps a lock in place of the last one. */
  #hold(lock: Lock): void {
    void this.#lock.then((unlock) => unlock?.());
    this.#lock = lock;
  }

  #replace(record: TreeRecord): void {
    const others = this.records.peek();
    this.records.value = others.some(({ id }) => id === record.id)
      ? others.map((kept) => (kept.id === record.id ? record : kept))
      : [record, ...others];
  }
}

/** Opens the tree that was changed last. */
export async function openLibrary(database: Database): Promise<TreeLibrary> {
  const library = new TreeLibrary(database, await listTrees(database));
  const [latest] = library.records.peek();
  if (latest) await library.open(latest.id);
  return library;
}
