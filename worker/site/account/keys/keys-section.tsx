import { useSignal } from '@preact/signals';
import { askAll, useAccount, useOwnKey } from '../account.ts';
import { ageColumn, codeColumn, nameColumn } from '../columns.tsx';
import type { Column } from '../data-table.tsx';
import { Flag } from '../form/fields.tsx';
import { dateText, dayOf, dayText, relative } from '../formats.ts';
import { Records } from '../records.tsx';
import { useResource } from '../resource.ts';
import { KeyDialogs } from './key-dialogs.tsx';
import { endOf, type KeyObject, stateOf } from './key-object.ts';

/** The keys of the account, for a key that manages them. */
export function KeysSection() {
  const account = useAccount();
  const own = useOwnKey();
  const showsEnded = useSignal(false);
  const keys = useResource((signal) => askAll<KeyObject>(account, '/v1/keys', signal), '');
  const now = account.clock.now() / 1000;
  return (
    <Records
      title="Keys"
      of={keys}
      create="Create a key"
      columnsOf={(onOpen) => columnsOf(own.id, now, onOpen)}
      sortedBy="Created"
      isListed={(key) => showsEnded.value || stateOf(key, now) !== 'ended'}
      search={{
        textsOf: ({ name, id }) => [name, id],
        hint: 'name or id',
        empty: ['The account has no keys yet.', 'No key is like this.'],
      }}
      dialog={(props) => <KeyDialogs {...props} />}
    >
      <Flag
        title="Show ended keys"
        value={showsEnded.value}
        onInput={(shows) => (showsEnded.value = shows)}
      />
    </Records>
  );
}

const columnsOf = (
  ownId: string,
  now: number,
  onOpen: (key: KeyObject) => void,
): readonly Column<KeyObject>[] => [
  nameColumn(
    ({ name }) => name,
    onOpen,
    ({ id }) => id === ownId && <span class="quiet"> this key</span>,
  ),
  { title: 'State', of: (key) => stateOf(key, now), show: (key) => <State of={key} now={now} /> },
  { title: 'For', of: ({ scopes }) => scopes.join(', ') },
  {
    title: 'Last used',
    of: ({ last_used_at }) => last_used_at,
    show: ({ last_used_at: day }) => (day === null ? 'never' : dayText(dayOf(day * 1000))),
    isNumber: true,
  },
  ageColumn(now),
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
