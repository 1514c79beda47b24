import { nameColumn, textColumn } from '../../account/columns.tsx';
import type { FormField } from '../../account/form/form-fields.ts';
import { Records } from '../../account/records.tsx';
import { useList } from '../../account/resource.ts';
import { type Column, numberColumn } from '../../controls/data-table.tsx';
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

const PATH = '/admin/v1/upstreams';
const READ_MS = 10_000;

/** The servers that complete texts, with their circuit breakers. */
export function UpstreamsSection() {
  const { owns } = useRights();
  return (
    <Records<UpstreamObject>
      title="Upstreams"
      noun="upstream"
      path={PATH}
      intro="Breaker, failures and requests are those of the part of the Worker that answered; others may differ. Changes are known everywhere within one minute. Secrets are named here, not written."
      of={useList(PATH, READ_MS)}
      create={owns ? 'Add an upstream' : null}
      columnsOf={columnsOf}
      about={({ fault, config }) => (
        <>
          {fault !== null && <p class="error-text">{fault}</p>}
          {owns || <pre>{JSON.stringify(config, null, 2)}</pre>}
        </>
      )}
      actionsOf={() => [
        owns && {
          text: 'Remove…',
          isDanger: true,
          request: { method: 'DELETE' },
          consequence:
            'gets no new requests within one minute; running ones end there. The last one that can be used stays.',
        },
      ]}
      partsOf={(upstream) => (owns ? () => (upstream === null ? [NAME, CONFIG] : [CONFIG]) : null)}
      requestOf={(upstream, { id = upstream?.id, config = upstream?.config }) => ({
        path: `${PATH}/${encodeURIComponent(String(id))}`,
        method: 'PUT',
        body: config,
      })}
    />
  );
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '–');

const columnsOf = (onOpen: (upstream: UpstreamObject) => void): readonly Column<UpstreamObject>[] => [
  nameColumn(onOpen),
  {
    title: 'Breaker',
    of: ({ breaker }) => breaker,
    show: ({ breaker, fault }) => (
      <span class="batch-name">
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

const NAME: FormField = {
  name: 'id',
  title: 'Name',
  hint: 'letters, digits, dots, hyphens and underscores',
  input: { required: true, pattern: '[A-Za-z0-9._\\-]{1,64}' },
};

/** Settings that the server checks. A change replaces all of them. */
const CONFIG: FormField = {
  name: 'config',
  title: 'Settings',
  hint: 'JSON, as in the variable UPSTREAMS',
  kind: 'json',
  initial: JSON.stringify({ kind: 'origin', url: 'https://', secret: 'ORIGIN_SECRET' }, null, 2),
  input: { rows: 12 },
};
