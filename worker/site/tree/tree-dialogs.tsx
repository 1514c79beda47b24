import { useSignal } from '@preact/signals';
import { TOKEN_FIELDS } from '../api/whole-choices.ts';
import { Button } from '../controls/button.tsx';
import { Dialog } from '../controls/dialog.tsx';
import { KeysDialog } from '../controls/keys-dialog.tsx';
import { ParametersPanel } from '../playground/parameters-panel.tsx';
import { editText, isDraft, nameNode, write } from './tree-commands.ts';
import type { TreeEditor } from './tree-editor.ts';
import { KEY_BINDINGS, shown } from './tree-keys.ts';
import type { OpenTreeProps } from './tree-state.ts';

type TextDialogs = Readonly<Record<string, Omit<TextDialogProps, 'onClose'>>>;

/** The dialogs that edit one text. */
function textDialogs(editor: TreeEditor): TextDialogs {
  const node = editor.node.peek();
  const { name } = editor.position.peek().tree;
  const setName = (text: string) => editor.edit((tree) => ({ ...tree, name: text.trim() || tree.name }));
  const [title, action] = isDraft(node)
    ? ['Text of this node', 'Change']
    : ['Another text beside this node', 'Add'];
  return {
    'name-node': {
      title: 'Name of this node',
      action: 'Name',
      start: node.name,
      onSave: (text) => nameNode(editor, text.trim()),
    },
    'name-tree': { title: 'Name of this tree', action: 'Name', start: name, onSave: setName },
    write: {
      title: 'Text after this node',
      action: 'Add',
      start: '',
      multiline: true,
      onSave: (text) => write(editor, text),
    },
    edit: { title, action, start: node.text, multiline: true, onSave: (text) => editText(editor, text) },
  };
}

/** A branch does not repeat the text before it. */
const NO_BRANCH_FIELDS = ['echo', 'echo_last', 'n'];

/** The dialog that is open, if any. */
export function TreeDialogs({ state, editor }: OpenTreeProps) {
  const onClose = () => {
    state.dialog.value = null;
  };
  const node = editor.node.peek();
  const { tree } = editor.position.peek();
  const name = state.dialog.value;
  switch (name) {
    case null:
      return null;
    case 'keys':
      return (
        <KeysDialog keys={KEY_BINDINGS.map(({ keys, does }) => [shown(keys), does])} onClose={onClose} />
      );
    case 'parameters':
      return (
        <Dialog title="Parameters of branches" class="fields" onClose={onClose}>
          <ParametersPanel parameters={state.parameters} preset={TOKEN_FIELDS} without={NO_BRANCH_FIELDS} />
        </Dialog>
      );
    case 'delete-tree':
      return (
        <Dialog title={`Delete “${tree.name}”?`} onClose={onClose}>
          <div class="stack">
            <p>This removes its {tree.nodes.size} nodes from this browser, and cannot be undone.</p>
            <div class="row">
              <Button text="Keep it" onClick={onClose} />
              <Button
                class="danger"
                text="Delete the tree"
                onClick={() => {
                  onClose();
                  void state.library.remove();
                }}
              />
            </div>
          </div>
        </Dialog>
      );
    default:
      return name === 'edit' && node.parent === null && !isDraft(node) ? (
        <Dialog title="The prompt has branches" onClose={onClose}>
          <p>Its branches continue this text. Start a new tree for another prompt, or write text after it.</p>
        </Dialog>
      ) : (
        <TextDialog key={name} onClose={onClose} {...textDialogs(editor)[name]!} />
      );
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
          <Button class="primary" text={action} type="submit" />
          {multiline && <span class="quiet">Ctrl-Enter</span>}
        </div>
      </form>
    </Dialog>
  );
}
