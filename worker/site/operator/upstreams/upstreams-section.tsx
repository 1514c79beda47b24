import { useSignal } from '@preact/signals';
import { askAll, useAccount } from '../../account/account.ts';
import { type Column, DataTable } from '../../account/data-table.tsx';
import { ConfirmByName } from '../../account/form/confirm-by-name.tsx';
import { Field, Lines } from '../../account/form/fields.tsx';
import { Form } from '../../account/form/form.tsx';
import { count } from '../../account/formats.ts';
import { useResource } from '../../account/resource.ts';
import { Loaded } from '../../account/states.tsx';
import { RequestFailure } from '../../api/request-failure.ts';
import { Button } from '../../controls/button.tsx';
import { Dialog } from '../../controls/dialog.tsx';
import { useRights } from '../rights.ts';

/** What the admin API says of an upstream. */
interface UpstreamObject {
  readonly id: string;
  /** `variable` until the first change. */
  readonly source: 'database' | 'variable';
  readonly fault: string | null;
  readonly breaker: 'closed' | 'open' | 'half-open';
  readonly failures: number;
  readonly running: number;
  /** Null = it is not JSON. */
  readonly config: Readonly<Record<string, unknown>> | null;
}

type UpstreamTask =
  | { readonly kind: 'add' }
  | { readonly kind: 'open' | 'remove'; readonly upstream: UpstreamObject };

const READ_MS = 10_000;

/** The servers that complete texts, with their circuit breakers. */
export function UpstreamsSection() {
  const account = useAccount();
  const { owns } = useRights();
  const task = useSignal<UpstreamTask | null>(null);
  const upstreams = useResource(
    (signal) => askAll<UpstreamObject>(account, '/admin/v1/upstreams', signal),
    '',
    READ_MS,
  );
  const current = task.value;
  const columns = columnsOf((upstream) => (task.value = { kind: 'open', upstream }));
  return (
    <>
      <div class="row spread">
        <h2>Upstreams</h2>
        {owns && (
          <Button
            class="primary"
            icon="plus"
            text="Add an upstream"
            onClick={() => (task.value = { kind: 'add' })}
          />
        )}
      </div>
      <p class="quiet">
        Breaker, failures and requests are those of the part of the Worker that answered; others may differ.
      </p>
      <Loaded of={upstreams}>
        {(all) => <DataTable caption="Upstreams" columns={columns} rows={all} idOf={({ id }) => id} />}
      </Loaded>
      {current && (
        <UpstreamDialog
          key={current.kind}
          task={current}
          onTask={(next) => (task.value = next)}
          onDone={(changed) => {
            if (task.peek() === current) task.value = null;
            if (changed) upstreams.reload();
          }}
        />
      )}
    </>
  );
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '–');

const columnsOf = (onOpen: (upstream: UpstreamObject) => void): readonly Column<UpstreamObject>[] => [
  {
    title: 'Name',
    of: ({ id }) => id,
    show: (upstream) => (
      <button type="button" class="link key-name" onClick={() => onOpen(upstream)}>
        <bdi>{upstream.id}</bdi>
      </button>
    ),
  },
  {
    title: 'Breaker',
    of: ({ breaker }) => breaker,
    show: ({ breaker, fault }) => (
      <span class="batch-state">
        {fault === null ? breaker : <span class="error-text">not used: {fault}</span>}
      </span>
    ),
  },
  { title: 'Failures', of: ({ failures }) => failures, isNumber: true },
  { title: 'Running', of: ({ running }) => running, show: ({ running }) => count(running), isNumber: true },
  { title: 'Kind', of: ({ config }) => textOf(config?.kind) },
  {
    title: 'Address',
    of: ({ config }) => textOf(config?.url),
    show: ({ config }) => <span class="batch-name">{textOf(config?.url)}</span>,
  },
  { title: 'From', of: ({ source }) => source },
];

interface UpstreamDialogProps {
  readonly task: UpstreamTask;
  readonly onTask: (task: UpstreamTask) => void;
  /** Closes the dialog; `changed` = the list is old. */
  readonly onDone: (changed: boolean) => void;
}

function UpstreamDialog({ task, onTask, onDone }: UpstreamDialogProps) {
  const account = useAccount();
  const { owns } = useRights();
  const send = async (id: string, method: string, body?: object) => {
    const path = `/admin/v1/upstreams/${encodeURIComponent(id)}`;
    await account.ask(path, { method, ...(body !== undefined && { body }) });
    onDone(true);
  };
  const put = (id: string, body: object) => send(id, 'PUT', body);
  if (task.kind === 'add')
    return (
      <Dialog title="Add an upstream" class="wide" onClose={() => onDone(false)}>
        <UpstreamForm upstream={null} onSave={put} />
      </Dialog>
    );
  const { upstream } = task;
  if (task.kind === 'remove')
    return (
      <ConfirmByName
        title="Remove an upstream"
        kind="upstream"
        name={upstream.id}
        action="Remove the upstream"
        onClose={() => onDone(false)}
        onConfirm={() => send(upstream.id, 'DELETE')}
      >
        gets no new requests within one minute; running ones end there. The last one that can be used stays.
      </ConfirmByName>
    );
  return (
    <Dialog title={upstream.id} class="wide" onClose={() => onDone(false)}>
      <div class="stack">
        {upstream.fault !== null && <p class="error-text">{upstream.fault}</p>}
        {owns ? (
          <>
            <div class="row">
              <Button class="danger" text="Remove…" onClick={() => onTask({ kind: 'remove', upstream })} />
            </div>
            <UpstreamForm upstream={upstream} onSave={put} />
          </>
        ) : (
          <pre>{JSON.stringify(upstream.config, null, 2)}</pre>
        )}
      </div>
    </Dialog>
  );
}

const NEW = { kind: 'origin', url: 'https://', secret: 'ORIGIN_SECRET' };

interface UpstreamFormProps {
  /** Null = a new one. */
  readonly upstream: UpstreamObject | null;
  readonly onSave: (id: string, body: object) => Promise<void>;
}

/** The settings of an upstream as JSON, which the server checks. A change replaces all of them. */
function UpstreamForm({ upstream, onSave }: UpstreamFormProps) {
  const name = useSignal(upstream?.id ?? '');
  const config = useSignal(JSON.stringify(upstream?.config ?? NEW, null, 2));
  const save = async () => {
    let body: object;
    try {
      body = JSON.parse(config.peek()) as object;
    } catch (thrown) {
      throw new RequestFailure('invalid-request', `The settings are not JSON: ${String(thrown)}`);
    }
    await onSave(name.peek(), body);
  };
  return (
    <Form action={upstream === null ? 'Add' : 'Save'} onSend={save}>
      {upstream === null && (
        <Field
          title="Name"
          hint="letters, digits, dots, hyphens and underscores"
          required
          pattern="[A-Za-z0-9._\-]{1,64}"
          value={name.value}
          onInput={(text) => (name.value = text)}
        />
      )}
      <Lines
        title="Settings"
        hint="JSON, as in the variable UPSTREAMS"
        rows={12}
        value={config.value}
        onInput={(text) => (config.value = text)}
      />
      <p class="quiet">Known everywhere within one minute. Secrets are named here, not written.</p>
    </Form>
  );
}
