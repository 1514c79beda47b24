import { useSignal } from '@preact/signals';
import type { ComponentType } from 'preact';
import type { ConstraintDialogProps } from './constraint-dialog.tsx';

/** Opens the editor of constraints, which is loaded when it is first used. */
export function ConstraintButton(props: Omit<ConstraintDialogProps, 'onClose'>) {
  const Opened = useSignal<ComponentType<ConstraintDialogProps> | null>(null);
  const open = async () => {
    const { ConstraintDialog } = await import('./constraint-dialog.tsx');
    Opened.value = ConstraintDialog;
  };
  return (
    <>
      <button type="button" class="button" onClick={() => void open()}>
        Edit schema, grammar or expression
      </button>
      {Opened.value && <Opened.value {...props} onClose={() => (Opened.value = null)} />}
    </>
  );
}
