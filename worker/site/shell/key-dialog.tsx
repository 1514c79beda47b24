import { useSignal } from '@preact/signals';
import { Button } from '../controls/button.tsx';
import { Dialog } from '../controls/dialog.tsx';
import { type Access, useSession } from '../store/session.ts';
import { SharedDialect } from './connection-settings.tsx';

const WHAT: Readonly<Record<Access['state'], string>> = {
  'no-key': 'Requests need an API key. A local server prints one; ask the operator of another.',
  checking: 'The server is checking the key.',
  accepted: 'The server accepts this key.',
  refused: 'The server refused this key.',
  unknown: 'The key could not be checked.',
};

export function KeyDialog({ onClose }: { readonly onClose: () => void }) {
  const { key, rememberKey, access } = useSession();
  const draft = useSignal(key.value ?? '');
  const save = (event: Event) => {
    event.preventDefault();
    key.value = draft.value.trim() === '' ? null : draft.value.trim();
    onClose();
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
        <label class="switch">
          <input
            type="checkbox"
            checked={rememberKey.value}
            onChange={(event) => (rememberKey.value = event.currentTarget.checked)}
          />
          Keep the key on this device
        </label>
        <div class="stack">
          <span>Dialect</span>
          <SharedDialect />
        </div>
        <p class="quiet">
          The key goes only to this server. Without the switch, it is forgotten at a reload.
        </p>
        <div class="row">
          <Button class="primary" text="Use this key" type="submit" />
        </div>
      </form>
    </Dialog>
  );
}
