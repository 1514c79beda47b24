import { useLayoutEffect, useMemo } from 'preact/hooks';
import { scrollToRow, useScroller } from '../controls/scroller.ts';
import { GRAPH, type GraphNode, graphLayout } from './graph-layout.ts';
import { idOf, NodeRow, type OutlineProps } from './tree-outline.tsx';

/** Pixels around the visible part that are rendered as well. */
const OVERSCAN = 200;
const MARGIN = 16;

/** The tree from left to right, with lines between the nodes. Renders only what is visible. */
export function TreeGraph({ editor, growing }: OutlineProps) {
  const { scroller, view } = useScroller();
  const rows = editor.rows.value;
  const nodes = useMemo(() => graphLayout(rows), [rows]);
  const { selected } = editor.position.value;
  const isMeasured = view.height > 0;
  useLayoutEffect(() => {
    const node = nodes.find(({ row }) => row.node.id === selected);
    const element = scroller.current!;
    if (!node || !isMeasured) return;
    element.scrollTop = scrollTo(node.top, GRAPH.row, element.scrollTop, view.height);
    element.scrollLeft = scrollTo(node.left, GRAPH.column, element.scrollLeft, view.width);
  }, [selected, isMeasured]);

  const isNear = (start: number, end: number, from: number, size: number) =>
    end >= from - OVERSCAN && start <= from + size + OVERSCAN;
  const shown = nodes.filter(
    ({ left, top, children }) =>
      isNear(left, left + GRAPH.column, view.left, view.width) &&
      isNear(children?.[0] ?? top, (children?.[1] ?? top) + GRAPH.row, view.top, view.height),
  );
  const right = nodes.reduce((most, { left }) => Math.max(most, left), 0) + GRAPH.width;
  const bottom = nodes.reduce((most, { top }) => Math.max(most, top), 0) + GRAPH.height;
  return (
    <div
      ref={scroller}
      class="outline graph"
      role="tree"
      aria-label="Tree"
      tabIndex={0}
      aria-activedescendant={idOf(selected)}
    >
      <div
        class="graph-space"
        style={{ width: `${right + 2 * MARGIN}px`, height: `${bottom + 2 * MARGIN}px` }}
      >
        {shown.map((node) => (
          <Trunk key={node.row.node.id} node={node} />
        ))}
        {shown.map(({ row, left, top }) => (
          <NodeRow
            key={row.node.id}
            row={row}
            selected={row.node.id === selected}
            growing={growing.has(row.node.id)}
            editor={editor}
            style={{
              left: `${left + MARGIN}px`,
              top: `${top + MARGIN}px`,
              width: `${GRAPH.width}px`,
              height: `${GRAPH.height}px`,
            }}
          />
        ))}
      </div>
    </div>
  );
}

/** Returns the scroll position that shows a node with its distance to the next one. */
const scrollTo = (start: number, size: number, scroll: number, length: number): number =>
  scrollToRow(start / size, scroll, length - 2 * MARGIN, size);

/** The line that the lines to the children leave. */
const Trunk = ({ node: { left, children } }: { readonly node: GraphNode }) =>
  children && (
    <div
      class="trunk"
      aria-hidden="true"
      style={{
        left: `${left + MARGIN + (GRAPH.width + GRAPH.column) / 2}px`,
        top: `${children[0] + MARGIN + GRAPH.height / 2}px`,
        height: `${children[1] - children[0]}px`,
      }}
    />
  );
