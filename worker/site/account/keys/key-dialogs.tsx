import { useSignal } from '@preact/signals';
import { Button } from '../../controls/button.tsx';
import { Dialog } from '../../controls/dialog.tsx';
import { Select } from '../../controls/select.tsx';
import { askJson, type MadeKey, useAccount, useOwnKey } from '../account.ts';
import { ConfirmByName } from '../form/confirm-by-name.tsx';
import { Field } from '../form/fields.tsx';
import { Form } from '../form/form.tsx';
import { dateText } from '../formats.ts';
import { Pairs } from '../pairs-list.tsx';
import { useAction } from '../resource.ts';
import { FormFault } from '../states.tsx';
import { KeyForm } from './key-form.tsx';
import { draftOf, type KeyObject, keyPatch, newKeyBody, rightsOf } from './key-object.ts';

/** What is done with keys in dialogs. */

export type KeyTask =
  | { readonly kind: 'create' }
  | { readonly kind: 'open' | 'rotate' | 'delete'; readonly key: KeyObject };

interface TaskProps {
  /** Closes the dialog; `changed` = the list is old. */
  readonly onDone: (changed: boolean) => void;
}

interface KeyTaskProps extends TaskProps {
  readonly of: KeyObject;
  readonly onTask: (task: KeyTask) => void;
}

interface KeyDialogsProps extends TaskProps {
  readonly task: KeyTask;
  readonly onTask: (task: KeyTask) => void;
}

export function KeyDialogs({ task, onTask, onDone }: KeyDialogsProps) {
  switch (task.kind) {
    case 'create':
      return <CreateKey onDone={onDone} />;
    case 'open':
      return <OpenKey of={task.key} onTask={onTask} onDone={onDone} />;
    case 'rotate':
      return <RotateKey of={task.key} onTask={onTask} onDone={onDone} />;
    case 'delete':
      return <DeleteKey of={task.key} onTask={onTask} onDone={onDone} />;
  }
}

function CreateKey({ onDone }: TaskProps) {
  const account = useAccount();
  return (
    <Dialog title="Create a key" class="wide" onClose={() => onDone(false)}>
      <KeyForm
        isNew
        initial={draftOf(null)}
        action="Create"
        onSave={async (draft) => {
          const made = await askJson<MadeKey>(account, '/v1/keys', { body: newKeyBody(draft) });
          account.made.value = [made, ...account.made.value];
          onDone(true);
        }}
      />
    </Dialog>
  );
}

/** One key: its facts, its fields if the own key may change it, and what else may be done with it. */
function OpenKey({ of: key, onTask, onDone }: KeyTaskProps) {
  const account = useAccount();
  const rights = rightsOf(key, useOwnKey(), account.clock.now() / 1000);
  const path = `/v1/keys/${key.id}`;
  const change = async (body: object) => {
    await account.ask(path, { method: 'PATCH', body });
    onDone(true);
  };
  const switching = useAction(() => change({ disabled: !key.disabled }));
  const initial = draftOf(key);
  return (
    <Dialog title={key.name} class="wide" onClose={() => onDone(false)}>
      <div class="stack">
        <KeyFacts of={key} />
        <div class="row">
          {rights.rotate && <Button text="Rotate…" onClick={() => onTask({ kind: 'rotate', key })} />}
          {(key.disabled ? rights.change : rights.end) && (
            <Button
              text={key.disabled ? 'Enable' : 'Disable'}
              disabled={switching.isBusy}
              onClick={switching.run}
            />
          )}
          {rights.end && (
            <Button class="danger" text="Delete…" onClick={() => onTask({ kind: 'delete', key })} />
          )}
        </div>
        <FormFault failure={switching.failure} />
        {rights.change && (
          <KeyForm
            isNew={false}
            initial={initial}
            action="Save"
            onSave={(draft) => change(keyPatch(draft, initial))}
          />
        )}
      </div>
    </Dialog>
  );
}

function KeyFacts({ of: key }: { readonly of: KeyObject }) {
  const at = (seconds: number | null) => (seconds === null ? null : dateText(seconds));
  return (
    <Pairs
      of={[
        ['Id', key.id],
        ['For', key.scopes.join(', ')],
        ['Created', dateText(key.created_at)],
        ['Last used on the day', at(key.last_used_at)],
        ['Ends', at(key.expires_at)],
        ['Revoked', at(key.revoked_at)],
        ['Replaced by', key.replaced_by],
      ]}
    />
  );
}

const UNITS = [
  ['60', 'minutes'],
  ['3600', 'hours'],
  ['86400', 'days'],
] as const;

function RotateKey({ of: key, onDone }: KeyTaskProps) {
  const account = useAccount();
  const amount = useSignal('24');
  const unit = useSignal('3600');
  const rotate = async () => {
    const body = { overlap_seconds: Math.round(Number(amount.peek()) * Number(unit.peek())) };
    const made = await askJson<MadeKey>(account, `/v1/keys/${key.id}/rotate`, { body });
    account.made.value = [made, ...account.made.value];
    onDone(true);
  };
  return (
    <Dialog title="Rotate a key" onClose={() => onDone(false)}>
      <Form action="Rotate" onSend={rotate}>
        <p>
          A new key takes the place of <bdi>{key.name}</bdi>, with the same settings. The old one works until
          the overlap ends.
        </p>
        <div class="row">
          <Field
            title="Overlap"
            type="number"
            required
            min={0}
            max={2_592_000 / Number(unit.value)}
            step="any"
            value={amount.value}
            onInput={(text) => (amount.value = text)}
          />
          <Select
            label="Unit of the overlap"
            value={unit.value}
            options={UNITS}
            onChange={(chosen) => (unit.value = chosen)}
          />
        </div>
        <p class="quiet">At most 30 days. 0 ends the old key at once.</p>
      </Form>
    </Dialog>
  );
}

function DeleteKey({ of: key, onDone }: KeyTaskProps) {
  const account = useAccount();
  return (
    <ConfirmByName
      title="Delete a key"
      kind="key"
      name={key.name}
      action="Delete the key"
      onClose={() => onDone(false)}
      onConfirm={async () => {
        await account.ask(`/v1/keys/${key.id}`, { method: 'DELETE' });
        onDone(true);
      }}
    >
      ends at once, with its open streams, and cannot be enabled again. Its usage stays.
    </ConfirmByName>
  );
}
