import { useSignal } from '@preact/signals';
import type { Column } from '../../controls/data-table.tsx';
import { Dialog } from '../../controls/dialog.tsx';
import { Pairs } from '../../controls/pairs.tsx';
import { Switch } from '../../controls/switch.tsx';
import { type Account, askJson, useAccount, useOwnKey } from '../account.ts';
import type { KeyObject, MadeKey } from '../api-objects.ts';
import { ageColumn, codeColumn, nameColumn } from '../columns.tsx';
import { Form } from '../form/form.tsx';
import { dateText, dayOf, dayText, relative } from '../formats.ts';
import type { Done } from '../record-dialog.tsx';
import { Records } from '../records.tsx';
import { useList } from '../resource.ts';
import type { ServerClock } from '../server-clock.ts';
import { keyFields, overlapFields, overlapSeconds } from './key-fields.ts';
import { endOf, rightsOf, stateOf } from './key-object.ts';

const PATH = '/v1/keys';

/** The page shows a new key until it is stored. */
const showMade = ({ made }: Account, key: MadeKey) => (made.value = [key, ...made.value]);

/** The keys of the account, for a key that manages them. */
export function KeysSection() {
  const account = useAccount();
  const ownKey = useOwnKey();
  const showsEnded = useSignal(false);
  const now = account.clock.now() / 1000;
  return (
    <Records<KeyObject>
      title="Keys"
      noun="key"
      path={PATH}
      of={useList(PATH)}
      create="Create a key"
      columnsOf={(onOpen) => columnsOf(ownKey.id, account.clock, onOpen)}
      sortedBy="Created"
      isListed={(key) => showsEnded.value || stateOf(key, now) !== 'ended'}
      search={{
        textsOf: ({ name, id }) => [name, id],
        hint: 'name or id',
        empty: ['The account has no keys yet.', 'No key is like this.'],
      }}
      about={(key) => <Facts of={key} />}
      actionsOf={(key) => {
        const rights = rightsOf(key, ownKey, now);
        return [
          rights.rotate && { text: 'Rotate…', dialog: (onDone) => <RotateKey of={key} onDone={onDone} /> },
          (key.disabled ? rights.change : rights.end) && {
            text: key.disabled ? 'Enable' : 'Disable',
            request: { method: 'PATCH', body: { disabled: !key.disabled } },
          },
          rights.end && {
            text: 'Delete…',
            isDanger: true,
            request: { method: 'DELETE' },
            consequence: 'ends at once, with its open streams, and cannot be enabled again. Its usage stays.',
          },
        ];
      }}
      partsOf={(key) =>
        key === null || rightsOf(key, ownKey, now).change ? () => keyFields(ownKey, key === null) : null
      }
      onMade={(key) => showMade(account, key as MadeKey)}
    >
      <Switch
        text="Show ended keys"
        value={showsEnded.value}
        onChange={(shows) => (showsEnded.value = shows)}
      />
    </Records>
  );
}

function Facts({ of: key }: { readonly of: KeyObject }) {
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

function RotateKey({ of: key, onDone }: { readonly of: KeyObject; readonly onDone: Done }) {
  const account = useAccount();
  return (
    <Dialog title="Rotate a key" onClose={() => onDone(false)}>
      <Form
        action="Rotate"
        partsOf={overlapFields}
        onSend={async (_, texts) => {
          const body = { overlap_seconds: overlapSeconds(texts) };
          showMade(account, await askJson(account, `${PATH}/${key.id}/rotate`, { body }));
          onDone(true);
        }}
      >
        <p>
          A new key takes the place of <bdi>{key.name}</bdi>, with the same settings. The old one works until
          the overlap ends: at most 30 days, and 0 ends it at once.
        </p>
      </Form>
    </Dialog>
  );
}

const columnsOf = (
  ownId: string,
  clock: ServerClock,
  onOpen: (key: KeyObject) => void,
): readonly Column<KeyObject>[] => [
  nameColumn(onOpen, ({ id }) => id === ownId && <span class="quiet"> this key</span>),
  {
    title: 'State',
    of: (key) => stateOf(key, clock.now() / 1000),
    show: (key) => <State of={key} now={clock.now() / 1000} />,
  },
  { title: 'For', of: ({ scopes }) => scopes.join(', ') },
  {
    title: 'Last used',
    of: ({ last_used_at }) => last_used_at,
    show: ({ last_used_at: day }) => (day === null ? 'never' : dayText(dayOf(day * 1000))),
    isNumber: true,
  },
  ageColumn(clock),
  codeColumn('Id', ({ id }) => id),
];

function State({ of: key, now }: { readonly of: KeyObject; readonly now: number }) {
  const [state, end] = [stateOf(key, now), endOf(key)];
  return (
    <span class={`key-badge ${state}`}>
      {state}
      {end !== null && (
        <span class="quiet" title={dateText(end)}>
          {state === 'ended' ? relative(end, now) : `ends ${relative(end, now)}`}
        </span>
      )}
    </span>
  );
}
