import { askAll, useAccount } from '../../account/account.ts';
import { nameColumn, numberColumn, textColumn } from '../../account/columns.tsx';
import type { Column } from '../../account/data-table.tsx';
import { ConfirmByName } from '../../account/form/confirm-by-name.tsx';
import { useDraft } from '../../account/form/draft.ts';
import { Field, Lines } from '../../account/form/fields.tsx';
import { Form } from '../../account/form/form.tsx';
import { Records, type TaskProps } from '../../account/records.tsx';
import { useResource } from '../../account/resource.ts';
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

const READ_MS = 10_000;

/** The servers that complete texts, with their circuit breakers. */
export function UpstreamsSection() {
  const account = useAccount();
  const { owns } = useRights();
  const upstreams = useResource(
    (signal) => askAll<UpstreamObject>(account, '/admin/v1/upstreams', signal),
    '',
    READ_MS,
  );
  return (
    <Records
      title="Upstreams"
      about="Breaker, failures and requests are those of the part of the Worker that answered; others may differ."
      of={upstreams}
      create={owns ? 'Add an upstream' : null}
      columnsOf={columnsOf}
      dialog={(props) => <UpstreamDialog {...props} />}
    />
  );
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '–');

const columnsOf = (onOpen: (upstream: UpstreamObject) => void): readonly Column<UpstreamObject>[] => [
  nameColumn(({ id }) => id, onOpen),
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
  numberColumn('Running', ({ running }) => running),
  { title: 'Kind', of: ({ config }) => textOf(config?.kind) },
  textColumn('Address', ({ config }) => textOf(config?.url)),
  { title: 'From', of: ({ source }) => source },
];

function UpstreamDialog({ task: { kind, of: upstream }, onTask, onDone }: TaskProps<UpstreamObject>) {
  const account = useAccount();
  const { owns } = useRights();
  const pathOf = (id: string) => `/admin/v1/upstreams/${encodeURIComponent(id)}`;
  const put = async (id: string, body: object) => {
    await account.ask(pathOf(id), { method: 'PUT', body });
    onDone(true);
  };
  if (upstream === null)
    return (
      <Dialog title="Add an upstream" class="wide" onClose={() => onDone(false)}>
        <UpstreamForm upstream={null} onSave={put} />
      </Dialog>
    );
  if (kind === 'remove')
    return (
      <ConfirmByName
        verb="Remove"
        kind="upstream"
        name={upstream.id}
        onDone={onDone}
        onConfirm={() => account.ask(pathOf(upstream.id), { method: 'DELETE' })}
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
              <Button class="danger" text="Remove…" onClick={() => onTask('remove')} />
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
  const config = JSON.stringify(upstream?.config ?? NEW, null, 2);
  const { values, bind } = useDraft({ name: upstream?.id ?? '', config });
  const save = async () => {
    let body: object;
    try {
      body = JSON.parse(values.peek().config) as object;
    } catch (thrown) {
      throw new RequestFailure('invalid-request', `The settings are not JSON: ${String(thrown)}`);
    }
    await onSave(values.peek().name, body);
  };
  return (
    <Form action={upstream === null ? 'Add' : 'Save'} onSend={save}>
      {upstream === null && (
        <Field
          title="Name"
          hint="letters, digits, dots, hyphens and underscores"
          required
          pattern="[A-Za-z0-9._\-]{1,64}"
          {...bind('name')}
        />
      )}
      <Lines title="Settings" hint="JSON, as in the variable UPSTREAMS" rows={12} {...bind('config')} />
      <p class="quiet">Known everywhere within one minute. Secrets are named here, not written.</p>
    </Form>
  );
}
