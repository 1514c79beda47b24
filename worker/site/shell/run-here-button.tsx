import { useSignal } from '@preact/signals';
import type { ComponentType } from 'preact';
import { Button } from '../controls/button.tsx';

/** Opens the dialog of models in this browser, which is loaded at the first click. */
export function RunHereButton() {
  const loaded = useSignal<{ readonly Dialog: ComponentType<{ onClose: () => void }> } | null>(null);
  const open = async () => {
    loaded.value = { Dialog: (await import('../local/run-here.tsx')).RunHereDialog };
  };
  return (
    <>
      <Button class="run-here" text="Run here" onClick={() => void open()} />
      {loaded.value && <loaded.value.Dialog onClose={() => (loaded.value = null)} />}
    </>
  );
}
