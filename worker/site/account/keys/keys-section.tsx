import { useSignal } from '@preact/signals';
import { Button } from '../../controls/button.tsx';
import { askAll, useAccount, useOwnKey } from '../account.ts';
import type { Column } from '../data-table.tsx';
import { dateText, dayOf, dayText, relative } from '../formats.ts';
import { useResource } from '../resource.ts';
import { SearchTable } from '../search-table.tsx';
import { Loaded } from '../states.tsx';
import { KeyDialogs, type KeyTask } from './key-dialogs.tsx';
import { endOf, type KeyObject, stateOf } from './key-object.ts';

/** The keys of the account, for a key that manages them. */
export function KeysSection() {
  const account = useAccount();
  const task = useSignal<KeyTask | null>(null);
  const keys = useResource((signal) => askAll<KeyObject>(account, '/v1/keys', signal), '');
  const current = task.value;
  return (
    <>
      <div class="row spread">
        <h2>Keys</h2>
        <Button
          class="primary"
          icon="plus"
          text="Create a key"
          onClick={() => (task.value = { kind: 'create' })}
        />
      </div>
      <Loaded of={keys}>
        {(all) => <KeyTable keys={all} onOpen={(key) => (task.value = { kind: 'open', key })} />}
      </Loaded>
      {current && (
        <KeyDialogs
          key={current.kind}
          task={current}
          onTask={(next) => (task.value = next)}
          onDone={(changed) => {
            // Another dialog may be open when a closed one has its answer.
            if (task.peek() === current) task.value = null;
            if (changed) keys.reload();
          }}
        />
      )}
    </>
  );
}

interface KeyTableProps {
  readonly keys: readonly KeyObject[];
  readonly onOpen: (key: KeyObject) => void;
}

function KeyTable({ keys, onOpen }: KeyTableProps) {
  const { clock } = useAccount();
  const own = useOwnKey();
  const showsEnded = useSignal(false);
  const now = clock.now() / 1000;
  return (
    <SearchTable
      caption="Keys"
      sortedBy="Created"
      columns={columnsOf(own.id, now, onOpen)}
      rows={keys.filter((key) => showsEnded.value || stateOf(key, now) !== 'ended')}
      total={keys.length}
      idOf={({ id }) => id}
      textsOf={({ name, id }) => [name, id]}
      hint="name or id"
      empty={['The account has no keys yet.', 'No key is like this.']}
    >
      <label class="switch">
        <input
          type="checkbox"
          checked={showsEnded.value}
          onChange={(event) => (showsEnded.value = event.currentTarget.checked)}
        />
        Show ended keys
      </label>
    </SearchTable>
  );
}

const columnsOf = (
  ownId: string,
  now: number,
  onOpen: (key: KeyObject) => void,
): readonly Column<KeyObject>[] => [
  {
    title: 'Name',
    of: ({ name }) => name,
    show: (key) => (
      <button type="button" class="link key-name" title={key.name} onClick={() => onOpen(key)}>
        <bdi>{key.name}</bdi>
        {key.id === ownId && <span class="quiet"> this key</span>}
      </button>
    ),
  },
  { title: 'State', of: (key) => stateOf(key, now), show: (key) => <State of={key} now={now} /> },
  { title: 'For', of: ({ scopes }) => scopes.join(', ') },
  {
    title: 'Last used',
    of: ({ last_used_at }) => last_used_at,
    show: ({ last_used_at: day }) => (day === null ? 'never' : dayText(dayOf(day * 1000))),
    isNumber: true,
  },
  {
    title: 'Created',
    of: ({ created_at }) => created_at,
    show: ({ created_at }) => <span title={dateText(created_at)}>{relative(created_at, now)}</span>,
    isNumber: true,
  },
  { title: 'Id', of: ({ id }) => id, show: ({ id }) => <code>{id}</code> },
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
