import { useSignal } from '@preact/signals';
import type { ComponentType } from 'preact';
import { IconButton } from '../controls/button.tsx';

/** Opens the dialog of models in this browser, which is loaded at the first click. */
export function RunHereButton() {
  const loaded = useSignal<{ readonly Dialog: ComponentType<{ onClose: () => void }> } | null>(null);
  const open = async () => {
    loaded.value = { Dialog: (await import('../local/run-here.tsx')).RunHereDialog };
  };
  return (
    <>
      <IconButton class="run-here" icon="device" name="Run here" onClick={() => void open()}>
        <span>Run here</span>
      </IconButton>
      {loaded.value && <loaded.value.Dialog onClose={() => (loaded.value = null)} />}
    </>
  );
}
