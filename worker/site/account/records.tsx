import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { Button } from '../controls/button.tsx';
import { type Column, DataTable, type NamedRecord } from '../controls/data-table.tsx';
import { Field } from './form/fields.tsx';
import { count } from './formats.ts';
import { RecordDialog, type RecordKind, type Task } from './record-dialog.tsx';
import type { Resource } from './resource.ts';
import { Empty, Loaded } from './states.tsx';

interface Search<T> {
  /** Texts of a row that are searched. */
  readonly textsOf: (row: T) => readonly string[];
  /** What the search finds a row by. */
  readonly hint: string;
  /** Said if there are no rows, and if none matches. */
  readonly empty: readonly [none: string, notFound: string];
}

interface RecordsProps<T> extends RecordKind<T> {
  readonly title: string;
  readonly intro?: string;
  readonly of: Resource<readonly T[]>;
  readonly columnsOf: (onOpen: (row: T) => void, rows: readonly T[]) => readonly Column<T>[];
  /** Title of the column that sorts at first, descending. */
  readonly sortedBy?: string;
  /** Absent = there are few records. */
  readonly search?: Search<T>;
  /** Whether a row is listed. Default: all are. */
  readonly isListed?: (row: T) => boolean;
  /** Further controls beside the search. */
  readonly children?: ComponentChildren;
}

/** Records as a table with a search, and the dialogs in which they are made, seen, changed and ended. */
export function Records<T extends NamedRecord>(props: RecordsProps<T>) {
  const { title, intro, of, create, columnsOf } = props;
  const task = useSignal<Task<T> | null>(null);
  const current = task.value;
  const open = (record: T | null) => (task.value = { record, action: null });
  return (
    <>
      <div class="row spread">
        <h2>{title}</h2>
        {create !== null && <Button class="primary" icon="plus" text={create} onClick={() => open(null)} />}
      </div>
      {intro !== undefined && <p class="quiet">{intro}</p>}
      <Loaded of={of}>{(rows) => <Table {...props} rows={rows} columns={columnsOf(open, rows)} />}</Loaded>
      {current && (
        <RecordDialog
          key={current.action?.text}
          kind={props}
          task={current}
          onAction={(action) => (task.value = { ...current, action })}
          onDone={(changed) => {
            // Another dialog may be open when a closed one has its answer.
            if (task.peek() === current) task.value = null;
            if (changed) of.reload();
          }}
        />
      )}
    </>
  );
}

interface TableProps<T> extends RecordsProps<T> {
  readonly rows: readonly T[];
  readonly columns: readonly Column<T>[];
}

function Table<T extends NamedRecord>(props: TableProps<T>) {
  const { title, rows, columns, sortedBy, search, isListed = () => true, children } = props;
  const searched = useSignal('');
  const wanted = searched.value.trim().toLowerCase();
  const { textsOf, hint, empty } = search ?? { textsOf: () => [''], hint: '', empty: ['', ''] };
  const matching = rows.filter(
    (row) => isListed(row) && textsOf(row).some((text) => text.toLowerCase().includes(wanted)),
  );
  return (
    <>
      {search && (
        <div class="row spread">
          <Field
            grows
            title="Find"
            type="search"
            placeholder={hint}
            dir="auto"
            value={searched.value}
            onInput={(text) => (searched.value = text)}
          />
          {children}
          <span class="quiet figures" role="status">
            {count(matching.length)} of {count(rows.length)}
          </span>
        </div>
      )}
      {search && matching.length === 0 ? (
        <Empty title={`No ${title.toLowerCase()}`}>{empty[rows.length === 0 ? 0 : 1]}</Empty>
      ) : (
        <DataTable caption={title} columns={columns} rows={matching} sortedBy={sortedBy} />
      )}
    </>
  );
}
