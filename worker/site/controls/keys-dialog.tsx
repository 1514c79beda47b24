import { Dialog } from './dialog.tsx';

interface KeysDialogProps {
  /** Names of keys, with two spaces between them, and what they do. */
  readonly keys: readonly (readonly [keys: string, action: string])[];
  readonly onClose: () => void;
}

export const KeysDialog = ({ keys, onClose }: KeysDialogProps) => (
  <Dialog title="Keys" class="wide" onClose={onClose}>
    <dl class="keys">
      {keys.map(([names, action]) => (
        <div key={names}>
          <dt>
            {names.split('  ').map((name) => (
              <kbd key={name}>{name}</kbd>
            ))}
          </dt>
          <dd>{action}</dd>
        </div>
      ))}
    </dl>
  </Dialog>
);
