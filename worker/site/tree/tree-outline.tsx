import type { CSSProperties } from 'preact';
import { useLayoutEffect } from 'preact/hooks';
import { rowWindow, scrollToRow, useScroller } from '../controls/scroller.ts';
import { meanLogprob, percentOf, tintClass } from '../tokens/probability.ts';
import type { OutlineRow } from './outline.ts';
import type { NodeId } from './tree.ts';
import type { TreeEditor } from './tree-editor.ts';

/** Heights of a row in pixels; coarse pointers need larger targets. */
const ROW = { fine: 32, coarse: 44 };
/** Deeper forks are not indented further. */
const MAX_INDENT = 10;

export const idOf = (node: NodeId) => `tree-node-${node}`;

export interface OutlineProps {
  readonly editor: TreeEditor;
  readonly growing: ReadonlySet<NodeId>;
}

/** The tree as a list of rows. Renders only the visible ones. */
export function TreeOutline({ editor, growing }: OutlineProps) {
  const { scroller, view } = useScroller();
  const rowHeight = matchMedia('(max-width: 760px), (pointer: coarse)').matches ? ROW.coarse : ROW.fine;
  const rows = editor.rows.value;
  const { selected } = editor.position.value;
  const { top, height } = view;
  const isMeasured = height > 0;
  // Only a selection scrolls: the visitor may look elsewhere while branches grow.
  useLayoutEffect(() => {
    const index = rows.findIndex(({ node }) => node.id === selected);
    const element = scroller.current!;
    if (isMeasured) element.scrollTop = scrollToRow(index, element.scrollTop, height, rowHeight);
  }, [selected, isMeasured]);

  const { start, end } = rowWindow(rows.length, top, height, rowHeight);
  return (
    <div
      ref={scroller}
      class="outline"
      role="tree"
      aria-label="Tree"
      tabIndex={0}
      aria-activedescendant={idOf(selected)}
    >
      <div class="outline-space" style={{ height: `${rows.length * rowHeight}px` }}>
        <div style={{ transform: `translateY(${start * rowHeight}px)` }}>
          {rows.slice(start, end).map((row) => (
            <NodeRow
              key={row.node.id}
              row={row}
              style={{
                height: `${rowHeight}px`,
                paddingLeft: `${4 + Math.min(row.indent, MAX_INDENT) * 16}px`,
              }}
              selected={row.node.id === selected}
              growing={growing.has(row.node.id)}
              editor={editor}
            />
          ))}
        </div>
      </div>
    </div>
  );
}

interface RowProps {
  readonly row: OutlineRow;
  readonly style: CSSProperties;
  readonly selected: boolean;
  readonly growing: boolean;
  readonly editor: TreeEditor;
}

/** One node in the outline or the graph. */
export function NodeRow({ row: { node, depth, hidden }, style, selected, growing, editor }: RowProps) {
  const isParent = node.children.length > 0;
  const mean = meanLogprob(node.tokens);
  return (
    // biome-ignore lint/a11y/useFocusableInteractive: the tree has the focus and names the active row.
    // biome-ignore lint/a11y/useKeyWithClickEvents: the keys of the view select rows.
    <div
      id={idOf(node.id)}
      class={`outline-row ${selected ? 'selected' : ''}`}
      role="treeitem"
      aria-level={depth + 1}
      aria-selected={selected}
      aria-expanded={isParent ? hidden === 0 : undefined}
      style={style}
      onClick={() => editor.select(node.id)}
      onDblClick={() => editor.fold(node.id)}
    >
      <span
        class={`twisty ${isParent ? (hidden > 0 ? 'closed' : 'open') : ''}`}
        aria-hidden="true"
        onClick={(event) => {
          if (!isParent) return;
          event.stopPropagation();
          editor.fold(node.id);
        }}
      />
      {node.bookmarked && (
        <span class="star" role="img" aria-label="Bookmarked">
          ★
        </span>
      )}
      <span class={`outline-text clipped ${node.generation ? '' : 'typed'}`}>
        {node.name === '' ? preview(node.text) : <strong>{node.name}</strong>}
      </span>
      {hidden > 0 && <span class="quiet figures">+{hidden}</span>}
      {growing ? (
        <span class="quiet">…</span>
      ) : (
        mean !== null && <span class={`mean figures ${tintClass(mean)}`}>{percentOf(mean)}</span>
      )}
    </div>
  );
}

/** Returns the beginning of a text on one line. */
const preview = (text: string): string =>
  text === '' ? '(empty)' : text.slice(0, 120).replace(/\n/g, '↵').replace(/\s+/g, ' ');
