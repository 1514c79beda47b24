import './data-table.css';
import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { Button } from './button.tsx';

export interface NamedRecord {
  readonly id: string;
  /** Absent = the id names it. */
  readonly name?: string;
}

export interface Column<T> {
  readonly title: string;
  /** What the column sorts by; null comes last. */
  readonly of: (row: T) => string | number | null;
  /** What a cell shows. Default: what it sorts by. */
  readonly show?: (row: T) => ComponentChildren;
  readonly isNumber?: boolean;
}

export interface TableProps<T> {
  readonly caption: string;
  readonly columns: readonly Column<T>[];
  readonly rows: readonly T[];
  /** Names a row. Absent = cells keep nothing, so that a place is enough. */
  readonly idOf?: (row: T) => string;
  /** Title of the column that sorts at first, descending. Absent = the order of the rows. */
  readonly sortedBy?: string | undefined;
  /** Cells of a last row. */
  readonly total?: readonly string[];
}

/** More rows are shown on further pages. */
export const PAGE_ROWS = 50;

/** @param show returns a value as people read it */
export const numberColumn = <T,>(
  title: string,
  of: (row: T) => number | null,
  show: (value: number) => string = (value) => value.toLocaleString('en'),
): Column<T> => ({
  title,
  of,
  show: (row) => {
    const value = of(row);
    return value === null ? null : show(value);
  },
  isNumber: true,
});

/** One for all: a comparison without it takes ten times as long. */
const TEXTS = new Intl.Collator('en', { numeric: true });

type Sorting = { readonly title: string; readonly isRising: boolean } | null;

function sortRows<T>(rows: readonly T[], column: Column<T> | undefined, isRising: boolean): readonly T[] {
  if (column === undefined) return rows;
  const sign = isRising ? 1 : -1;
  return rows.toSorted((first, second) => {
    const [a, b] = [column.of(first), column.of(second)];
    if (a === null || b === null) return Number(a === null) - Number(b === null);
    return (
      sign * (typeof a === 'number' && typeof b === 'number' ? a - b : TEXTS.compare(String(a), String(b)))
    );
  });
}

/** A table whose columns sort, in pages. */
export function DataTable<T>({ caption, columns, rows, idOf, sortedBy, total }: TableProps<T>) {
  const sorting = useSignal<Sorting>(sortedBy === undefined ? null : { title: sortedBy, isRising: false });
  const chosenPage = useSignal(0);
  const { title, isRising } = sorting.value ?? { title: '', isRising: false };
  const sorted = sortRows(
    rows,
    columns.find((column) => column.title === title),
    isRising,
  );
  const pages = Math.max(1, Math.ceil(rows.length / PAGE_ROWS));
  const page = Math.min(chosenPage.value, pages - 1);
  const sortBy = (column: Column<T>) => {
    const rising = column.title === title ? !isRising : !column.isNumber;
    sorting.value = { title: column.title, isRising: rising };
    chosenPage.value = 0;
  };
  return (
    <>
      <section class="table-frame framed" aria-label={caption}>
        <table class="data figures">
          <thead>
            <tr>
              {columns.map((column) => (
                <th
                  key={column.title}
                  scope="col"
                  class={column.isNumber ? 'number' : ''}
                  aria-sort={column.title === title ? (isRising ? 'ascending' : 'descending') : 'none'}
                >
                  <button type="button" onClick={() => sortBy(column)}>
                    {column.title}
                  </button>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {sorted.slice(page * PAGE_ROWS, (page + 1) * PAGE_ROWS).map((row, place) => (
              <tr key={idOf?.(row) ?? place}>
                {columns.map((column) => (
                  <td key={column.title} class={column.isNumber ? 'number' : ''}>
                    {column.show?.(row) ?? column.of(row) ?? '–'}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
          {total && (
            <tfoot>
              <tr>
                {total.map((text, at) => (
                  <td key={columns[at]!.title} class={columns[at]!.isNumber ? 'number' : ''}>
                    {text}
                  </td>
                ))}
              </tr>
            </tfoot>
          )}
        </table>
      </section>
      {pages > 1 && (
        <Pages page={page} pages={pages} rows={rows.length} onChange={(next) => (chosenPage.value = next)} />
      )}
    </>
  );
}

interface PagesProps {
  readonly page: number;
  readonly pages: number;
  readonly rows: number;
  readonly onChange: (page: number) => void;
}

const Pages = ({ page, pages, rows, onChange }: PagesProps) => (
  <div class="row pages figures">
    <Button text="Previous" disabled={page === 0} onClick={() => onChange(page - 1)} />
    <Button text="Next" disabled={page === pages - 1} onClick={() => onChange(page + 1)} />
    <span class="quiet" role="status">
      {page * PAGE_ROWS + 1} to {Math.min(rows, (page + 1) * PAGE_ROWS)} of {rows.toLocaleString('en')}
    </span>
  </div>
);
