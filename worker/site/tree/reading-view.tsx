import { useSignal } from '@preact/signals';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { Button } from '../controls/button.tsx';
import { useSession } from '../store/session.ts';
import type { PlacedTokens } from '../tokens/placed-tokens.ts';
import { jointLogprob, meanLogprob, percent } from '../tokens/probability.ts';
import { spoken } from '../tokens/spoken-token.ts';
import { TokenList } from '../tokens/token-list.tsx';
import { TokenName } from '../tokens/token-name.tsx';
import { BranchCards } from './branch-cards.tsx';
import { pathTo, type TreeNode } from './tree.ts';
import { branchWith } from './tree-commands.ts';
import type { OpenTreeProps } from './tree-state.ts';

/** Nodes above the selected one that are rendered at first, and more with each press of the button. */
const PARTS = 40;

/** The text from the root to the selected node, and the branches that follow. */
export function ReadingView({ state, editor }: OpenTreeProps) {
  const node = editor.node.value;
  const { whiteSpace } = useSession().display.value;
  const path = pathTo(editor.position.value.tree, node.id).slice(0, -1);
  const parts = useSignal(PARTS);
  const end = useRef<HTMLDivElement>(null);
  const hasBranches = node.children.length > 0;
  useLayoutEffect(() => {
    parts.value = PARTS;
    // Shows the end of the text and the first branches.
    end.current?.scrollIntoView({ block: 'center' });
  }, [node.id, hasBranches, state.graph.value]);
  const earlier = Math.max(0, path.length - parts.value);
  return (
    <div class="reading">
      <div class="reading-text token-text">
        {earlier > 0 && (
          <Button
            text={`Show ${Math.min(PARTS, earlier)} of ${earlier} earlier parts`}
            onClick={() => (parts.value += PARTS)}
          />
        )}
        {path.slice(earlier).map((part) => (
          // biome-ignore lint/a11y/noStaticElementInteractions: the keys of the view and the outline do the same.
          // biome-ignore lint/a11y/useKeyWithClickEvents: as above.
          <span key={part.id} class="part" onClick={() => editor.select(part.id)}>
            <TokenName name={part.text} whiteSpace={whiteSpace} />
          </span>
        ))}
        <TokenList
          key={node.id}
          content={node}
          label="Tokens of this node"
          cursor={state.cursor}
          onChoose={(tokens, alternative) => branchWith(state, editor, tokens, alternative)}
        />
      </div>
      <div ref={end}>
        <NodeFigures node={node} />
      </div>
      <p class="visually-hidden" aria-live="polite">
        {announcementOf(node, state.cursor.value)}
      </p>
      <BranchCards editor={editor} growing={state.branching.growing.value} />
    </div>
  );
}

/** What a screen reader says of the selected token. The list says it while it has the focus. */
function announcementOf({ text }: TreeNode, selected: PlacedTokens | null): string {
  if (selected === null || document.activeElement?.role === 'listbox') return '';
  const { from, to, tokens } = selected;
  return spoken({ name: text.slice(from, to), logprob: jointLogprob(tokens) });
}

const FINISHED: Readonly<Record<string, string>> = { stop: 'ends here', length: 'cut at max_tokens' };

/** What is known about one node, in one line. */
function NodeFigures({ node: { tokens, generation } }: { readonly node: TreeNode }) {
  const mean = meanLogprob(tokens);
  if (generation === null) return <p class="node-figures quiet">typed</p>;
  const { model, promptTokens, cachedTokens, finishReason } = generation;
  const facts = [
    model,
    `${tokens.length} tokens`,
    ...(mean === null ? [] : [`mean probability ${percent(mean)}`]),
    ...(promptTokens === null ? [] : [`${cachedTokens} of ${promptTokens} prompt tokens cached`]),
    ...(finishReason === null ? [] : [FINISHED[finishReason] ?? finishReason]),
  ];
  return <p class="node-figures quiet figures">{facts.join(' · ')}</p>;
}
