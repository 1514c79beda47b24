import type { ComponentChildren } from 'preact';
import type { Column, NamedRecord } from '../controls/data-table.tsx';
import { dateText, momentText, relative } from './formats.ts';
import type { ServerClock } from './server-clock.ts';

/** Columns that several tables have. */

/** Texts that may be long, or run from right to left. */
export const textColumn = <T,>(title: string, of: (row: T) => string): Column<T> => ({
  title,
  of,
  show: (row) => (
    <span class="batch-name">
      <bdi>{of(row)}</bdi>
    </span>
  ),
});

export const codeColumn = <T,>(title: string, of: (row: T) => string): Column<T> => ({
  title,
  of,
  show: (row) => <code>{of(row)}</code>,
});

/** Names that open their record. @param after stands behind a name */
export const nameColumn = <T extends NamedRecord>(
  onOpen: (row: T) => void,
  after: (row: T) => ComponentChildren = () => null,
): Column<T> => {
  const nameOf = ({ name, id }: T) => name ?? id;
  return {
    title: 'Name',
    of: nameOf,
    show: (row) => (
      <button type="button" class="link key-name" title={nameOf(row)} onClick={() => onOpen(row)}>
        <bdi class="clipped">{nameOf(row)}</bdi>
        {after(row)}
      </button>
    ),
  };
};

interface Created {
  /** Unix seconds. */
  readonly created_at: number;
}

const createdAt = ({ created_at }: Created): number => created_at;

/** Times that open their record. */
export const timeColumn = <T extends Created>(
  titleOf: (row: T) => string,
  onOpen: (row: T) => void,
): Column<T> => ({
  title: 'Time',
  of: createdAt,
  show: (row) => (
    <button type="button" class="link" title={titleOf(row)} onClick={() => onOpen(row)}>
      {momentText(row.created_at)}
    </button>
  ),
});

/** Times relative to the server's. */
export const ageColumn = <T extends Created>(clock: ServerClock): Column<T> => ({
  title: 'Created',
  of: createdAt,
  // The tenant 'operator' comes with the database, which has no time for it.
  show: ({ created_at }) =>
    created_at === 0 ? (
      '–'
    ) : (
      <span title={dateText(created_at)}>{relative(created_at, clock.now() / 1000)}</span>
    ),
  isNumber: true,
});
