import { Icon } from '../controls/icon.tsx';
import { complete, usePlayground } from './playground-state.ts';
import { StatusLine } from './status-line.tsx';

export function ActionBar() {
  const state = usePlayground();
  const { generation, editor, isRunning, canUndo, content } = state;
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
          onClick={() => editor.value?.undo()}
        >
          <Icon name="undo" />
          Undo
        </button>
      </div>
      <StatusLine />
    </div>
  );
}
