import { useSignal } from '@preact/signals';
import { Dialog } from '../controls/dialog.tsx';
import { KeysDialog } from '../controls/keys-dialog.tsx';
import { ParametersPanel } from '../playground/parameters-panel.tsx';
import { editText, isDraft, nameNode, write } from './tree-commands.ts';
import type { TreeEditor } from './tree-editor.ts';
import { KEY_BINDINGS, shown } from './tree-keys.ts';
import type { TreeState } from './tree-state.ts';

interface DialogsProps {
  readonly state: TreeState;
  readonly editor: TreeEditor;
}

/** The dialog that is open, if any. */
export function TreeDialogs({ state, editor }: DialogsProps) {
  const onClose = () => {
    state.dialog.value = null;
  };
  const node = editor.node.peek();
  const { tree } = editor.position.peek();
  switch (state.dialog.value) {
    case 'keys':
      return (
        <KeysDialog keys={KEY_BINDINGS.map(({ keys, does }) => [shown(keys), does])} onClose={onClose} />
      );
    case 'name-node':
      return (
        <TextDialog
          title="Name of this node"
          action="Name"
          start={node.name}
          onClose={onClose}
          onSave={(name) => nameNode(editor, name.trim())}
        />
      );
    case 'name-tree':
      return (
        <TextDialog
          title="Name of this tree"
          action="Name"
          start={tree.name}
          onClose={onClose}
          onSave={(name) => editor.edit((tree) => ({ ...tree, name: name.trim() || tree.name }))}
        />
      );
    case 'write':
      return (
        <TextDialog
          title="Text after this node"
          action="Add"
          start=""
          multiline
          onClose={onClose}
          onSave={(text) => write(editor, text)}
        />
      );
    case 'edit':
      return node.parent === null && !isDraft(node) ? (
        <Dialog title="The prompt has branches" onClose={onClose}>
          <p>Its branches continue this text. Start a new tree for another prompt, or write text after it.</p>
        </Dialog>
      ) : (
        <TextDialog
          title={isDraft(node) ? 'Text of this node' : 'Another text beside this node'}
          action={isDraft(node) ? 'Change' : 'Add'}
          start={node.text}
          multiline
          onClose={onClose}
          onSave={(text) => editText(editor, text)}
        />
      );
    case 'parameters':
      return (
        <Dialog title="Parameters of branches" class="fields" onClose={onClose}>
          <ParametersPanel parameters={state.parameters} without="Logprobs" />
        </Dialog>
      );
    case 'delete-tree':
      return (
        <Dialog title={`Delete “${tree.name}”?`} onClose={onClose}>
          <div class="stack">
            <p>This removes its {tree.nodes.size} nodes from this browser, and cannot be undone.</p>
            <div class="row">
              <button type="button" class="button" onClick={onClose}>
                Keep it
              </button>
              <button
                type="button"
                class="button danger"
                onClick={() => {
                  onClose();
                  void state.library.remove();
                }}
              >
                Delete the tree
              </button>
            </div>
          </div>
        </Dialog>
      );
    default:
      return null;
  }
}

interface TextDialogProps {
  readonly title: string;
  /** Name of the button that saves. */
  readonly action: string;
  readonly start: string;
  readonly multiline?: boolean;
  readonly onSave: (text: string) => void;
  readonly onClose: () => void;
}

function TextDialog({ title, action, start, multiline = false, onSave, onClose }: TextDialogProps) {
  const draft = useSignal(start);
  const save = (event: Event) => {
    event.preventDefault();
    onClose();
    onSave(draft.value);
  };
  const field = {
    'aria-label': title,
    value: draft.value,
    onInput: (event: { currentTarget: { value: string } }) => {
      draft.value = event.currentTarget.value;
    },
  };
  return (
    <Dialog title={title} onClose={onClose} class={multiline ? 'tree-dialog' : ''}>
      <form
        class="stack"
        onSubmit={save}
        onKeyDown={(event) => event.key === 'Enter' && (event.ctrlKey || event.metaKey) && save(event)}
      >
        <div class="field">
          {multiline ? <textarea rows={8} {...field} /> : <input maxLength={120} {...field} />}
        </div>
        <div class="row">
          <button type="submit" class="button primary">
            {action}
          </button>
          {multiline && <span class="quiet">Ctrl-Enter</span>}
        </div>
      </form>
    </Dialog>
  );
}
