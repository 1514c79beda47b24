import { useSignal } from '@preact/signals';
import { Dialog } from '../controls/dialog.tsx';
import { Icon } from '../controls/icon.tsx';
import { CopyDialog } from '../copy/copy-dialog.tsx';
import { ParametersPanel } from './parameters-panel.tsx';
import { complete, usePlayground } from './playground-state.ts';
import { promptOf } from './request-body.ts';
import { StatusLine } from './status-line.tsx';

export function ActionBar() {
  const state = usePlayground();
  const { generation, editor, isRunning, canUndo, content, parameters, session } = state;
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
        <button
          type="button"
          class="button"
          disabled={!isRunning.value}
          title="Esc"
          onClick={generation.stop}
        >
          <Icon name="stop" />
          Stop
        </button>
        <button
          type="button"
          class="button"
          disabled={isRunning.value || !canUndo.value}
          title="Ctrl-Z"
          aria-label="Undo"
          onClick={() => editor.value?.undo()}
        >
          <Icon name="undo" />
          <span class="only-wide">Undo</span>
        </button>
        <button
          type="button"
          class="button icon only-narrow"
          aria-label="Parameters"
          onClick={() => (sheetOpen.value = true)}
        >
          <Icon name="sliders" />
        </button>
        <button
          type="button"
          class="button plain"
          aria-label="Copy as code"
          disabled={content.value.text === ''}
          onClick={() => (copyOpen.value = true)}
        >
          <Icon name="copy" />
          <span class="only-wide">Copy as</span>
        </button>
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
          <ParametersPanel />
        </Dialog>
      )}
    </div>
  );
}
