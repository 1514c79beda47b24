import { useSignal } from '@preact/signals';
import { Button } from '../controls/button.tsx';
import { DataTable, PAGE_ROWS, type TableProps } from '../controls/data-table.tsx';
import { askJson, useAccount } from './account.ts';
import { useResource } from './resource.ts';
import { Empty, Loaded } from './states.tsx';

interface PagedTableProps<T, Page> extends Pick<TableProps<T>, 'caption' | 'columns' | 'idOf'> {
  readonly path: string;
  /** Empty values are not sent. */
  readonly query?: Readonly<Record<string, string>>;
  /** Returns what the next page begins after; null = there is none. */
  readonly nextOf: (page: Page) => string | null;
  /** Time between two readings of the newest rows, or of all by what they are. Default: read once. */
  readonly refreshMs?: number | ((page: Page) => number | null);
  /** Another one reads the rows again. */
  readonly version?: number;
  /** Said if there are no rows: a title and a sentence. */
  readonly empty: readonly [title: string, text: string];
}

/** '' = the newest row. */
const FIRST_PAGE: readonly string[] = [''];

/** Rows that the server gives in pages, the newest first. */
export function PagedTable<T extends { readonly id: string }, Page extends { readonly data: readonly T[] }>({
  path,
  query = {},
  nextOf,
  refreshMs = () => null,
  version = 0,
  idOf = ({ id }) => id,
  empty: [title, text],
  ...table
}: PagedTableProps<T, Page>) {
  const account = useAccount();
  const asked = JSON.stringify(query);
  /** Where each page begins that was shown of a question; the last one is shown. */
  const shown = useSignal({ asked, starts: FIRST_PAGE });
  const starts = shown.value.asked === asked ? shown.value.starts : FIRST_PAGE;
  const show = (next: readonly string[]) => (shown.value = { asked, starts: next });
  const after = starts.at(-1)!;
  const given = Object.entries({ ...query, after }).filter(([, value]) => value !== '');
  const address = `${path}?${new URLSearchParams([['limit', String(PAGE_ROWS)], ...given])}`;
  const page = useResource(
    (signal) => askJson<Page>(account, address, { signal }),
    `${address} ${version}`,
    after === '' || typeof refreshMs === 'function' ? refreshMs : null,
  );
  return (
    <Loaded of={page}>
      {(value) => (
        <>
          {value.data.length === 0 ? (
            <Empty title={title}>{text}</Empty>
          ) : (
            <DataTable {...table} idOf={idOf} rows={value.data} />
          )}
          {(after !== '' || nextOf(value) !== null) && (
            <div class="row pages">
              <Button text="Newer" disabled={after === ''} onClick={() => show(starts.slice(0, -1))} />
              <Button
                text="Older"
                disabled={nextOf(value) === null}
                onClick={() => show([...starts, nextOf(value)!])}
              />
            </div>
          )}
        </>
      )}
    </Loaded>
  );
}
