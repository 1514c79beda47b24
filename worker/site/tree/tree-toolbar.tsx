import { Button, IconButton, UndoButtons } from '../controls/button.tsx';
import { Select } from '../controls/select.tsx';
import { OpenInMenu } from '../copy/open-in-menu.tsx';
import { saveAsFile } from './files/tree-files.ts';
import { pathTo } from './tree.ts';
import { importTree, toggleGraph } from './tree-commands.ts';
import type { TreeEditor } from './tree-editor.ts';
import type { OpenTreeProps, TreeState } from './tree-state.ts';

interface ToolbarProps {
  readonly state: TreeState;
  /** Null while the visitor starts a tree. */
  readonly editor: TreeEditor | null;
}

/** Choice of the tree, files and undo. */
export function TreeToolbar({ state, editor }: ToolbarProps) {
  const { library } = state;
  const trees = library.records.value.map(({ id, name, size }) => [id, `${name} (${size})`] as const);
  if (trees.length === 0 && editor === null) return null;
  return (
    <div class="tree-toolbar">
      <Select
        class="tree-select"
        label="Tree"
        value={editor?.id ?? ''}
        options={editor ? trees : [['', 'New tree'], ...trees]}
        onChange={(id) => void library.open(id)}
      />
      {editor && <TreeButtons state={state} editor={editor} />}
    </div>
  );
}

function TreeButtons({ state, editor }: OpenTreeProps) {
  const { library, dialog } = state;
  const { tree } = editor.position.value;
  const open = (name: TreeState['dialog']['value']) => () => {
    dialog.value = name;
  };
  return (
    <>
      <Button class="new-tree" icon="plus" text="New" onClick={library.close} />
      <OpenInMenu
        label="File"
        from="tree"
        parts={() => pathTo(editor.position.peek().tree, editor.position.peek().selected)}
        items={[
          { name: 'Import JSON…', onSelect: () => void importTree(state) },
          { name: 'Export as JSON', onSelect: () => void saveAsFile(tree, 'json') },
          { name: 'Export as Markdown', onSelect: () => void saveAsFile(tree, 'md') },
          { name: 'Rename tree…', onSelect: open('name-tree') },
          { name: 'Delete tree…', onSelect: open('delete-tree') },
        ]}
      />
      <div class="push row">
        <IconButton
          icon="branch"
          name="Graph"
          keys="v"
          pressed={state.graph.value}
          onClick={() => toggleGraph(state)}
        />
        <UndoButtons
          class="plain icon"
          canUndo={editor.canUndo.value}
          canRedo={editor.canRedo.value}
          undo={editor.undo}
          redo={editor.redo}
        />
        <IconButton
          icon="keyboard"
          name="Keys"
          keys="?"
          class="plain icon keyboard-button"
          onClick={open('keys')}
        />
      </div>
    </>
  );
}
