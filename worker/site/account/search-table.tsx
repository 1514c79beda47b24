import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { type Column, DataTable } from './data-table.tsx';
import { count } from './formats.ts';
import { Empty } from './states.tsx';

interface SearchTableProps<T> {
  readonly caption: string;
  readonly columns: readonly Column<T>[];
  readonly rows: readonly T[];
  readonly idOf: (row: T) => string;
  /** Texts of a row that are searched. */
  readonly textsOf: (row: T) => readonly string[];
  /** What the search finds a row by. */
  readonly hint: string;
  /** Title of the column that sorts at first, descending. */
  readonly sortedBy?: string;
  /** Number of all rows, also of those that are left out. Default: of `rows`. */
  readonly total?: number;
  /** Said if there are no rows, and if none is found. */
  readonly empty: readonly [none: string, notFound: string];
  /** Further controls beside the search. */
  readonly children?: ComponentChildren;
}

/** A table with a search in texts of its rows. */
export function SearchTable<T>({ textsOf, hint, total, empty, children, ...table }: SearchTableProps<T>) {
  const search = useSignal('');
  const { rows, caption } = table;
  const wanted = search.value.trim().toLowerCase();
  const found = rows.filter((row) => textsOf(row).some((text) => text.toLowerCase().includes(wanted)));
  const all = total ?? rows.length;
  return (
    <>
      <div class="row spread">
        <label class="field labelled grows">
          <span>Find</span>
          <input
            type="search"
            placeholder={hint}
            dir="auto"
            value={search.value}
            onInput={(event) => (search.value = event.currentTarget.value)}
          />
        </label>
        {children}
        <span class="quiet figures" role="status">
          {count(found.length)} of {count(all)}
        </span>
      </div>
      {found.length === 0 ? (
        <Empty title={`No ${caption.toLowerCase()}`}>{empty[all === 0 ? 0 : 1]}</Empty>
      ) : (
        <DataTable {...table} rows={found} />
      )}
    </>
  );
}
