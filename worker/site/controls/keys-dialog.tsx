import { Dialog } from './dialog.tsx';

interface KeysDialogProps {
  readonly keys: readonly (readonly [keys: string, action: string])[];
  readonly onClose: () => void;
}

export const KeysDialog = ({ keys, onClose }: KeysDialogProps) => (
  <Dialog title="Keys" class="wide" onClose={onClose}>
    <dl class="keys">
      {keys.map(([names, action]) => (
        <div key={names}>
          <dt>
            <kbd>{names}</kbd>
          </dt>
          <dd>{action}</dd>
        </div>
      ))}
    </dl>
  </Dialog>
);
