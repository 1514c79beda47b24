import { Dialog } from '../controls/dialog.tsx';

const KEYS: readonly (readonly [keys: string, action: string])[] = [
  ['Ctrl Enter', 'Complete the text'],
  ['Esc', 'Stop, or close the alternatives'],
  ['Ctrl Z', 'Take back the last completion or change'],
  ['Ctrl Shift Z', 'Bring it back'],
  [']  [', 'Go to the next or previous token; with Alt while the text has the cursor'],
  ['↓  ↑', 'Select an alternative'],
  ['Tab, Enter', 'Continue from the selected alternative'],
  ['Alt M', 'Set or remove the insertion mark'],
  ['U', 'Switch between colours and underlines; with Alt in the text'],
  ['?', 'Show these keys'],
];

export const KeysDialog = ({ onClose }: { readonly onClose: () => void }) => (
  <Dialog title="Keys" onClose={onClose}>
    <dl class="keys">
      {KEYS.map(([keys, action]) => (
        <div key={keys}>
          <dt>
            <kbd>{keys}</kbd>
          </dt>
          <dd>{action}</dd>
        </div>
      ))}
    </dl>
  </Dialog>
);
