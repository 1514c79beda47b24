import { Icon, type IconName } from '../controls/icon.tsx';
import { bookmark } from './tree-commands.ts';
import type { TreeEditor } from './tree-editor.ts';
import type { TreeState } from './tree-state.ts';

interface NodeActionsProps {
  readonly state: TreeState;
  readonly editor: TreeEditor;
}

/** Actions on the selected node, apart from branching. */
export function NodeActions({ state, editor }: NodeActionsProps) {
  const { bookmarked, parent, name } = editor.node.value;
  const { dialog } = state;
  return (
    <div class="node-actions">
      <strong class="node-name">{name}</strong>
      <Action icon="plus" name="Write" keyName="w" onClick={() => (dialog.value = 'write')} />
      <Action icon="pencil" name="Edit" keyName="e" onClick={() => (dialog.value = 'edit')} />
      <Action icon="tag" name="Name" keyName="n" onClick={() => (dialog.value = 'name-node')} />
      <Action icon="star" name="Bookmark" keyName="b" pressed={bookmarked} onClick={() => bookmark(editor)} />
      <Action
        icon="scissors"
        name="Prune"
        keyName="x"
        disabled={parent === null}
        onClick={() => editor.prune(editor.node.peek().id)}
      />
    </div>
  );
}

interface ActionProps {
  readonly icon: IconName;
  readonly name: string;
  readonly keyName: string;
  readonly pressed?: boolean;
  readonly disabled?: boolean;
  readonly onClick: () => void;
}

const Action = ({ icon, name, keyName, pressed, disabled = false, onClick }: ActionProps) => (
  <button
    type="button"
    class="button plain"
    title={`${name} (${keyName})`}
    aria-pressed={pressed}
    disabled={disabled}
    onClick={onClick}
  >
    <Icon name={icon} />
    <span>{name}</span>
  </button>
);
