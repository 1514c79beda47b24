import { useSignal } from '@preact/signals';
import { Button } from '../controls/button.tsx';
import { Dialog } from '../controls/dialog.tsx';
import { Switch } from '../controls/switch.tsx';
import { type Access, useSession } from '../store/session.ts';
import { SharedDialect } from './connection-settings.tsx';
import { addressOf } from './routes.ts';

const WHAT: Readonly<Record<Access['state'], string>> = {
  'no-key':
    'Requests need an API key. A local server prints one below its link, which works once; ask the operator of another.',
  checking: 'The server is checking the key.',
  accepted: 'The server accepts this key.',
  refused: 'The server refused this key.',
  unknown: 'The key could not be checked.',
};

export function KeyDialog({ onClose }: { readonly onClose: () => void }) {
  const { key, keptKey, changeKey, access } = useSession();
  const draft = useSignal(key.value ?? '');
  const keeps = useSignal(key.value !== null && key.value === keptKey.value);
  const save = (event: Event) => {
    event.preventDefault();
    changeKey(draft.value.trim() || null, keeps.value);
    onClose();
  };
  const keep = (isOn: boolean) => {
    keeps.value = isOn;
    // At once for the key in use; one that is being written waits for its button.
    if (key.value !== null) changeKey(key.value, isOn);
  };
  const { state } = access.value;
  return (
    <Dialog title="API key" onClose={onClose}>
      <form class="stack" onSubmit={save}>
        <p class="quiet">{WHAT[state]}</p>
        {'failure' in access.value && <p class="error-text">{access.value.failure.message}</p>}
        <label class="field stack">
          <span>Key</span>
          <input
            type="password"
            autocomplete="off"
            spellcheck={false}
            placeholder="sk-…"
            value={draft.value}
            onInput={(event) => (draft.value = event.currentTarget.value)}
          />
        </label>
        <Switch text="Keep the key on this device" value={keeps.value} onChange={keep} />
        <div class="stack">
          <span>Dialect</span>
          <SharedDialect />
        </div>
        {state === 'accepted' && (
          <p>
            What it may use, and has used:{' '}
            <a href={`/${addressOf('account')}`} onClick={onClose}>
              Account
            </a>
          </p>
        )}
        <p class="quiet">
          The key goes only to this server. Without the switch, it is forgotten at a reload.
          {keptKey.value !== null &&
            !keeps.value &&
            ' This device keeps another key, which a reload brings back.'}
        </p>
        <div class="row">
          <Button class="primary" text="Use this key" type="submit" />
        </div>
      </form>
    </Dialog>
  );
}
