import type { ComponentProps } from 'preact';
import { IconButton } from '../controls/button.tsx';
import { bookmark } from './tree-commands.ts';
import type { OpenTreeProps } from './tree-state.ts';

/** Actions on the selected node, apart from branching. */
export function NodeActions({ state, editor }: OpenTreeProps) {
  const { bookmarked, parent, name } = editor.node.value;
  const { dialog } = state;
  return (
    <div class="node-actions">
      <strong class="node-name clipped">{name}</strong>
      <Action icon="plus" name="Write" keys="w" onClick={() => (dialog.value = 'write')} />
      <Action icon="pencil" name="Edit" keys="e" onClick={() => (dialog.value = 'edit')} />
      <Action icon="tag" name="Name" keys="n" onClick={() => (dialog.value = 'name-node')} />
      <Action icon="star" name="Bookmark" keys="b" pressed={bookmarked} onClick={() => bookmark(editor)} />
      <Action
        icon="scissors"
        name="Prune"
        keys="x"
        disabled={parent === null}
        onClick={() => editor.prune(editor.node.peek().id)}
      />
    </div>
  );
}

const Action = (props: ComponentProps<typeof IconButton>) => (
  <IconButton class="plain" {...props}>
    <span>{props.name}</span>
  </IconButton>
);
