import { useSignal } from '@preact/signals';
import { Button } from '../controls/button.tsx';
import { meanLogprob, percentOf, tintClass } from '../tokens/probability.ts';
import { type NodeId, nodeOf, type TreeNode } from './tree.ts';
import type { TreeEditor } from './tree-editor.ts';

/** Branches that are rendered at first. */
const SHOWN = 24;
/** Characters of a branch that fit into its card. */
const PREVIEW = 400;

interface BranchCardsProps {
  readonly editor: TreeEditor;
  readonly growing: ReadonlySet<NodeId>;
}

/** The branches of the selected node, as they grow. */
export function BranchCards({ editor, growing }: BranchCardsProps) {
  const all = useSignal(false);
  const { tree } = editor.position.value;
  const children = editor.node.value.children;
  if (children.length === 0) return null;
  const shown = all.value ? children : children.slice(0, SHOWN);
  return (
    <section aria-labelledby="branches-heading">
      <h2 id="branches-heading" class="quiet">
        {children.length === 1 ? '1 branch' : `${children.length} branches`}
      </h2>
      <ol class="branch-cards">
        {shown.map((id, index) => (
          <li key={id}>
            <BranchCard
              node={nodeOf(tree, id)}
              number={index + 1}
              growing={growing.has(id)}
              onSelect={() => editor.select(id)}
            />
          </li>
        ))}
      </ol>
      {shown.length < children.length && (
        <Button text={`Show all ${children.length} branches`} onClick={() => (all.value = true)} />
      )}
    </section>
  );
}

/** Returns the beginning of a text. Blank lines at its start would hide it, so they show as signs. */
const preview = (text: string): string =>
  text.slice(0, PREVIEW).replace(/^\s+/, (blank) => {
    const breaks = '↵'.repeat(blank.split('\n').length - 1);
    return breaks && `${breaks} `;
  });

interface BranchCardProps {
  readonly node: TreeNode;
  readonly number: number;
  readonly growing: boolean;
  readonly onSelect: () => void;
}

function BranchCard({ node, number, growing, onSelect }: BranchCardProps) {
  const { text, tokens, name, bookmarked, children, generation } = node;
  const mean = meanLogprob(tokens);
  return (
    <button type="button" class="card branch-card" onClick={onSelect}>
      <span class="branch-head quiet figures">
        {number <= 9 && <kbd>{number}</kbd>}
        {bookmarked && <span class="star">★</span>}
        {name !== '' && <strong class="clipped">{name}</strong>}
        <span class="push">{generation === null ? 'typed' : `${tokens.length} tokens`}</span>
        {mean !== null && !growing && <span class={tintClass(mean)}>{percentOf(mean)}</span>}
        {children.length > 0 && <span>{children.length} below</span>}
      </span>
      <span class="branch-text">
        {preview(text)}
        {growing && <span class="caret" role="img" aria-label="still growing" />}
      </span>
    </button>
  );
}
