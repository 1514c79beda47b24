import type { StateTable } from './state-table.ts';

/** A table of parser states that the memory of tables may drop. */
export class TableHandle {
  /** Null after it was dropped. */
  table: StateTable | null;
  /** Bytes of the table when they were last counted. */
  counted = 0;
  readonly ref: WeakRef<TableHandle> = new WeakRef(this);

  constructor(table: StateTable) {
    this.table = table;
  }
}

/** The constraint of a sequence. */
export interface TableUser {
  readonly ref: WeakRef<TableUser>;
  /** The tables that its next call needs. */
  readonly tables: readonly TableHandle[];
}

/** After so many calls of others without its own, about 10 s of a busy engine, a user is not protected. */
const MAX_IDLE_CALLS = 100_000;

/**
 * Limits the memory of the tables of all grammars and sequences. The least recently used ones are dropped:
 * their sequences compute them again from the text. The tables of one user whose operation goes on are
 * protected, so that every operation ends at some time.
 */
export class TableMemory {
  readonly #maxBytes: number;
  /** Least recently used first. */
  readonly #handles = new Set<WeakRef<TableHandle>>();
  /** Users whose operation goes on, in the order of protection, with the number of their last call. */
  readonly #unfinished = new Map<WeakRef<TableUser>, number>();
  #calls = 0;
  #bytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Estimated memory of all tables, among them those that the garbage collector will find. */
  get bytes(): number {
    return this.#bytes;
  }

  /**
   * Counts the tables of a user after its call, and drops tables of others if all take too much memory.
   * @param goesOn whether the user's operation goes on in another call
   */
  afterCall(user: TableUser, goesOn: boolean): void {
    this.#calls++;
    for (const handle of user.tables) this.#count(handle);
    if (goesOn) this.#unfinished.set(user.ref, this.#calls);
    else this.#unfinished.delete(user.ref);
    if (this.#bytes > this.#maxBytes) this.#drop(user);
  }

  #count(handle: TableHandle): void {
    if (handle.table === null) return;
    this.#handles.delete(handle.ref);
    this.#handles.add(handle.ref);
    const { bytes } = handle.table;
    this.#bytes += bytes - handle.counted;
    handle.counted = bytes;
  }

  #drop(user: TableUser): void {
    const live = [...this.#handles].flatMap((ref) => ref.deref() ?? []);
    this.#handles.clear();
    for (const { ref } of live) this.#handles.add(ref);
    this.#bytes = live.reduce((sum, { counted }) => sum + counted, 0);
    const kept = new Set([...user.tables, ...(this.#protected()?.tables ?? [])]);
    for (const handle of live) {
      if (this.#bytes <= this.#maxBytes) return;
      if (kept.has(handle)) continue;
      this.#handles.delete(handle.ref);
      this.#bytes -= handle.counted;
      handle.table = null;
    }
  }

  #protected(): TableUser | null {
    for (const [ref, startedAt] of this.#unfinished) {
      const user = ref.deref();
      if (user !== undefined && this.#calls - startedAt <= MAX_IDLE_CALLS) return user;
      this.#unfinished.delete(ref);
    }
    return null;
  }
}
