import { useSignal } from '@preact/signals';
import { Button, IconButton, UndoButtons } from '../controls/button.tsx';
import { Dialog } from '../controls/dialog.tsx';
import { OpenInMenu } from '../copy/open-in-menu.tsx';
import { ParametersPanel } from './parameters-panel.tsx';
import { complete, presetOf, showRun, usePlayground } from './playground-state.ts';
import { StatusLine } from './status-line.tsx';

export function ActionBar() {
  const state = usePlayground();
  const { generation, editor, isRunning, content, parameters, dialog, runs } = state;
  const sheetOpen = useSignal(false);
  const isReady = editor.value !== null && content.value.text !== '';
  return (
    <div class="action-bar">
      <div class="row">
        <Button
          class="primary"
          icon="play"
          text="Complete"
          disabled={isRunning.value || !isReady}
          title="Ctrl-Enter"
          onClick={() => void complete(state)}
        />
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
        <UndoButtons
          class="icon"
          canUndo={!isRunning.value && editor.value?.canUndo === true}
          canRedo={!isRunning.value && editor.value?.canRedo === true}
          undo={() => editor.value?.undo()}
          redo={() => editor.value?.redo()}
        />
        <IconButton
          class="icon only-narrow"
          icon="sliders"
          name="Parameters"
          onClick={() => (sheetOpen.value = true)}
        />
        <OpenInMenu
          label="More"
          from=""
          parts={() => [{ text: content.peek().text, tokens: [] }]}
          disabled={content.value.text === ''}
          items={[
            { name: 'List of tokens…', onSelect: () => (dialog.value = 'tokens') },
            { name: 'Link to this text…', onSelect: () => (dialog.value = 'share') },
            { name: 'Copy as code…', onSelect: () => (dialog.value = 'copy') },
            ...(runs.value.length > 0
              ? [{ name: 'Last request…', onSelect: () => void showRun(state, null) }]
              : []),
          ]}
        />
      </div>
      <StatusLine />
      {sheetOpen.value && (
        <Dialog title="Parameters" class="sheet" onClose={() => (sheetOpen.value = false)}>
          <ParametersPanel parameters={parameters} preset={presetOf(state)} />
        </Dialog>
      )}
    </div>
  );
}
