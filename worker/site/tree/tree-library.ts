import { effect, type Signal, signal } from '@preact/signals';
import type { Database } from '../store/database.ts';
import { lockForPage } from '../store/page-lock.ts';
import { ROOT, type Tree } from './tree.ts';
import { createEditor, type StoredPosition, type TreeEditor } from './tree-editor.ts';
import { deleteTree, listTrees, loadTree, saveTree, type TreeRecord } from './tree-store.ts';

/** All trees of this browser, and the one that is open. */
export interface TreeLibrary {
  readonly records: Signal<readonly TreeRecord[]>;
  /** Null while the visitor starts a tree. */
  readonly editor: Signal<TreeEditor | null>;
  /** Why changes are not kept; null = they are. */
  readonly storageFault: Signal<string | null>;
  /** Name of the tree that was not opened because another tab has it; null = none. */
  readonly inOtherTab: Signal<string | null>;
  /** Opens a tree, unless another tab has it: two tabs would overwrite each other's changes. */
  open(id: string): Promise<void>;
  /** Adds a tree and opens it. */
  add(tree: Tree): void;
  /** Removes the open tree and opens another. */
  remove(): Promise<void>;
  /** Closes the open tree, so that the visitor can start another. */
  readonly close: () => void;
  /** Writes changes that wait. */
  readonly flush: () => void;
}

/** Browsers have no `crypto.randomUUID` on pages from another host over plain HTTP. */
const randomId = (): string => crypto.getRandomValues(new BigUint64Array(2)).join('-');

/** Longest time between a change and its writing. */
const WRITE_DELAY_MS = 200;

/** Opens the tree that was changed last. */
export async function openLibrary(
  database: Database,
  now: () => number = Date.now,
  newId: () => string = randomId,
): Promise<TreeLibrary> {
  const records = signal(await listTrees(database));
  const editor = signal<TreeEditor | null>(null);
  const storageFault = signal<string | null>(null);
  const inOtherTab = signal<string | null>(null);
  let lock: ReturnType<typeof lockForPage> = Promise.resolve(null);
  let saved: Partial<StoredPosition> = {};
  let timer: ReturnType<typeof setTimeout> | undefined;

  const current = (): StoredPosition | null =>
    editor.value && { ...editor.value.position.value, collapsed: editor.value.collapsed.value };

  function flush(): void {
    clearTimeout(timer);
    timer = undefined;
    const position = current();
    if (position === null || !differs(position, saved)) return;
    const { tree, selected, collapsed } = position;
    const record: TreeRecord = {
      id: editor.peek()!.id,
      ...{ name: tree.name, size: tree.nodes.size, nextId: tree.nextId },
      ...{ selected, collapsed, changed: now() },
    };
    const others = records.peek();
    records.value = others.some(({ id }) => id === record.id)
      ? others.map((other) => (other.id === record.id ? record : other))
      : [record, ...others];
    saveTree(database, record, saved.tree ?? null, tree).then(
      () => {
        storageFault.value = null;
      },
      (reason: unknown) => {
        saved = {};
        storageFault.value = String(reason);
      },
    );
    saved = position;
  }

  const lockOf = (id: string) => lockForPage(`continuo-tree-${id}`);

  function replaceLock(next: typeof lock): void {
    void lock.then((unlock) => unlock?.());
    lock = next;
  }

  const open = async (id: string): Promise<void> => {
    flush();
    const next = lockOf(id);
    const unlock = await next;
    // Other tabs may have changed the trees.
    records.value = await listTrees(database);
    const record = records.peek().find((other) => other.id === id);
    inOtherTab.value = unlock === null ? (record?.name ?? null) : null;
    if (unlock === null) return;
    const tree = record && (await loadTree(database, record));
    if (!record || !tree) return unlock();
    replaceLock(next);
    const selected = tree.nodes.has(record.selected) ? record.selected : ROOT;
    saved = { tree, selected, collapsed: record.collapsed };
    editor.value = createEditor(id, { tree, selected, collapsed: record.collapsed });
  };

  effect(() => {
    const position = current();
    if (position !== null && differs(position, saved)) timer ??= setTimeout(flush, WRITE_DELAY_MS);
  });
  const [latest] = records.peek();
  if (latest) await open(latest.id);

  return {
    ...{ records, editor, storageFault, inOtherTab, open, flush },
    close: () => {
      flush();
      replaceLock(Promise.resolve(null));
      editor.value = null;
    },
    add: (tree) => {
      flush();
      saved = {};
      const id = newId();
      replaceLock(lockOf(id));
      editor.value = createEditor(id, { tree, selected: ROOT, collapsed: new Set() });
      flush();
    },
    remove: async () => {
      const removed = editor.peek();
      if (removed === null) return;
      clearTimeout(timer);
      timer = undefined;
      editor.value = null;
      records.value = records.peek().filter(({ id }) => id !== removed.id);
      await deleteTree(database, removed.id);
      replaceLock(Promise.resolve(null));
      const [next] = records.peek();
      if (next) await open(next.id);
    },
  };
}

const differs = (position: StoredPosition, saved: Partial<StoredPosition>): boolean =>
  position.tree !== saved.tree ||
  position.selected !== saved.selected ||
  position.collapsed !== saved.collapsed;
