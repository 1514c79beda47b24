import { Button } from '../../controls/button.tsx';
import { Dialog } from '../../controls/dialog.tsx';
import { Select } from '../../controls/select.tsx';
import { askJson, type MadeKey, useAccount, useOwnKey } from '../account.ts';
import { ActionButton } from '../form/action-button.tsx';
import { ConfirmByName } from '../form/confirm-by-name.tsx';
import { useDraft } from '../form/draft.ts';
import { Field } from '../form/fields.tsx';
import { Form } from '../form/form.tsx';
import { dateText } from '../formats.ts';
import { Pairs } from '../pairs-list.tsx';
import type { TaskProps } from '../records.tsx';
import { KeyForm } from './key-form.tsx';
import { draftOf, type KeyObject, keyPatch, newKeyBody, rightsOf } from './key-object.ts';

/** What is done with keys in dialogs. */

type Done = Pick<TaskProps<KeyObject>, 'onDone'>;

interface OneProps extends Omit<TaskProps<KeyObject>, 'task'> {
  readonly of: KeyObject;
}

export function KeyDialogs({ task: { kind, of }, ...props }: TaskProps<KeyObject>) {
  if (of === null) return <CreateKey {...props} />;
  if (kind === 'rotate') return <RotateKey of={of} {...props} />;
  if (kind === 'delete') return <DeleteKey of={of} {...props} />;
  return <OpenKey of={of} {...props} />;
}

function CreateKey({ onDone }: Done) {
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
function OpenKey({ of: key, onTask, onDone }: OneProps) {
  const account = useAccount();
  const rights = rightsOf(key, useOwnKey(), account.clock.now() / 1000);
  const path = `/v1/keys/${key.id}`;
  const change = async (body: object) => {
    await account.ask(path, { method: 'PATCH', body });
    onDone(true);
  };
  const initial = draftOf(key);
  return (
    <Dialog title={key.name} class="wide" onClose={() => onDone(false)}>
      <div class="stack">
        <KeyFacts of={key} />
        <div class="row">
          {rights.rotate && <Button text="Rotate…" onClick={() => onTask('rotate')} />}
          {(key.disabled ? rights.change : rights.end) && (
            <ActionButton
              text={key.disabled ? 'Enable' : 'Disable'}
              onSend={() => change({ disabled: !key.disabled })}
            />
          )}
          {rights.end && <Button class="danger" text="Delete…" onClick={() => onTask('delete')} />}
        </div>
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

function RotateKey({ of: key, onDone }: OneProps) {
  const account = useAccount();
  const { values, bind } = useDraft({ amount: '24', unit: '3600' });
  const { value: unit, onInput: onUnit } = bind('unit');
  const rotate = async () => {
    const { amount, unit: seconds } = values.peek();
    const body = { overlap_seconds: Math.round(Number(amount) * Number(seconds)) };
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
            max={2_592_000 / Number(unit)}
            step="any"
            {...bind('amount')}
          />
          <Select label="Unit of the overlap" options={UNITS} value={unit} onChange={onUnit} />
        </div>
        <p class="quiet">At most 30 days. 0 ends the old key at once.</p>
      </Form>
    </Dialog>
  );
}

function DeleteKey({ of: key, onDone }: OneProps) {
  const account = useAccount();
  return (
    <ConfirmByName
      verb="Delete"
      kind="key"
      name={key.name}
      onDone={onDone}
      onConfirm={() => account.ask(`/v1/keys/${key.id}`, { method: 'DELETE' })}
    >
      ends at once, with its open streams, and cannot be enabled again. Its usage stays.
    </ConfirmByName>
  );
}
