import { useSignal } from '@preact/signals';
import { useLayoutEffect, useRef } from 'preact/hooks';

/** Long lists, of which only the visible rows are rendered. */

/** An element that scrolls, and its visible part in pixels. */
export function useScroller() {
  const scroller = useRef<HTMLDivElement>(null);
  const view = useSignal({ top: 0, left: 0, width: 0, height: 0 });
  useLayoutEffect(() => {
    const element = scroller.current!;
    const measure = () => {
      const { scrollTop: top, scrollLeft: left, clientWidth: width, clientHeight: height } = element;
      view.value = { top, left, width, height };
    };
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    element.addEventListener('scroll', measure, { passive: true });
    // The observer answers after the first paint, which would show few rows.
    measure();
    element.focus({ preventScroll: true });
    return () => observer.disconnect();
  }, []);
  return { scroller, view: view.value };
}

/** The part of a long list that is rendered. */
export interface RowWindow {
  /** Index of the first rendered row, and the index after the last one. */
  readonly start: number;
  readonly end: number;
}

/** Rows rendered above and below the visible ones, so that a fast scroll shows no gap. */
const OVERSCAN = 8;

/** @param scroll, height, rowHeight in pixels */
export function rowWindow(count: number, scroll: number, height: number, rowHeight: number): RowWindow {
  const first = Math.floor(scroll / rowHeight) - OVERSCAN;
  const last = Math.ceil((scroll + height) / rowHeight) + OVERSCAN;
  const end = Math.min(count, Math.max(0, last));
  return { start: Math.min(Math.max(0, first), end), end };
}

/** Returns the scroll position that shows a row and is nearest to the present one, in pixels. */
export function scrollToRow(index: number, scroll: number, height: number, rowHeight: number): number {
  const top = index * rowHeight;
  return Math.min(top, Math.max(scroll, top + rowHeight - height));
}
