import { useSignal } from '@preact/signals';
import { Dialog } from '../controls/dialog.tsx';
import { Icon, IconButton } from '../controls/icon.tsx';
import { CopyDialog } from '../copy/copy-dialog.tsx';
import { OpenInMenu } from '../copy/open-in-menu.tsx';
import { ParametersPanel } from './parameters-panel.tsx';
import { complete, usePlayground } from './playground-state.ts';
import { promptOf } from './request-body.ts';
import { StatusLine } from './status-line.tsx';

export function ActionBar() {
  const state = usePlayground();
  const { generation, editor, isRunning, canUndo, canRedo, content, parameters, session } = state;
  const sheetOpen = useSignal(false);
  const copyOpen = useSignal(false);
  const isReady = editor.value !== null && content.value.text !== '';
  return (
    <div class="action-bar">
      <div class="row">
        <button
          type="button"
          class="button primary"
          disabled={isRunning.value || !isReady}
          title="Ctrl-Enter"
          onClick={() => void complete(state)}
        >
          <Icon name="play" />
          Complete
        </button>
        <IconButton
          class=""
          icon="stop"
          name="Stop"
          keys="Esc"
          disabled={!isRunning.value}
          onClick={generation.stop}
        >
          <span>Stop</span>
        </IconButton>
        <IconButton
          class="icon"
          icon="undo"
          name="Undo"
          keys="Ctrl-Z"
          disabled={isRunning.value || !canUndo.value}
          onClick={() => editor.value?.undo()}
        />
        <IconButton
          class="icon"
          icon="redo"
          name="Redo"
          keys="Ctrl-Shift-Z"
          disabled={isRunning.value || !canRedo.value}
          onClick={() => editor.value?.redo()}
        />
        <button
          type="button"
          class="button icon only-narrow"
          aria-label="Parameters"
          onClick={() => (sheetOpen.value = true)}
        >
          <Icon name="sliders" />
        </button>
        <OpenInMenu
          label="More"
          from=""
          parts={() => [{ text: content.peek().text, tokens: [] }]}
          disabled={content.value.text === ''}
          items={[{ name: 'Copy as code…', onSelect: () => (copyOpen.value = true) }]}
        />
      </div>
      <StatusLine />
      {copyOpen.value && (
        <CopyDialog
          body={{ model: session.model.value, ...promptOf(content.value), ...parameters.value }}
          onClose={() => (copyOpen.value = false)}
        />
      )}
      {sheetOpen.value && (
        <Dialog title="Parameters" class="sheet" onClose={() => (sheetOpen.value = false)}>
          <ParametersPanel parameters={parameters} />
        </Dialog>
      )}
    </div>
  );
}
