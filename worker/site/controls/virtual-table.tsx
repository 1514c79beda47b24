import './virtual-table.css';
import type { ComponentChildren } from 'preact';
import { rowWindow, useScroller } from './scroller.ts';

export interface VirtualColumn<T> {
  readonly title: string;
  /** Width such as `80px`; 'auto' takes the rest. */
  readonly width: string;
  readonly isNumber?: boolean;
  readonly show: (row: T) => ComponentChildren;
}

interface VirtualTableProps<T> {
  readonly label: string;
  readonly columns: readonly VirtualColumn<T>[];
  readonly rows: readonly T[];
  readonly takesFocus?: boolean;
}

/** Heights of a row in pixels, as the style has them. */
const ROW = { fine: 32, coarse: 44 };

/** A table of any length. Renders only the visible rows. */
export function VirtualTable<T>({ label, columns, rows, takesFocus = true }: VirtualTableProps<T>) {
  const { scroller, view } = useScroller(takesFocus);
  const rowHeight = matchMedia('(max-width: 760px), (pointer: coarse)').matches ? ROW.coarse : ROW.fine;
  const { start, end } = rowWindow(rows.length, view.top, view.height, rowHeight);
  const cellClass = ({ isNumber }: VirtualColumn<T>) => (isNumber ? 'number' : '');
  /** What is not rendered above and below. */
  const space = {
    paddingTop: `${start * rowHeight}px`,
    paddingBottom: `${(rows.length - end) * rowHeight}px`,
  };
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls it
    <section ref={scroller} class="virtual-table figures" aria-label={label} tabIndex={0}>
      <div style={space}>
        <table aria-rowcount={rows.length + 1}>
          <colgroup>
            {columns.map(({ title, width }) => (
              <col key={title} style={{ width }} />
            ))}
          </colgroup>
          <thead>
            <tr aria-rowindex={1}>
              {columns.map((column) => (
                <th key={column.title} scope="col" class={`quiet ${cellClass(column)}`}>
                  {column.title}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.slice(start, end).map((row, at) => (
              <tr key={start + at} aria-rowindex={start + at + 2}>
                {columns.map((column) => (
                  <td key={column.title} class={cellClass(column)}>
                    {column.show(row)}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
