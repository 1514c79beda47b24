import { type Signal, useSignal } from '@preact/signals';
import { Button } from '../../controls/button.tsx';
import { askJson, useAccount } from '../account.ts';
import { type Column, DataTable, PAGE_ROWS } from '../data-table.tsx';
import { count, dateText, milliseconds, money } from '../formats.ts';
import { Pairs } from '../pairs-list.tsx';
import { useAction, useResource } from '../resource.ts';
import { Empty, FormFault, Loaded } from '../states.tsx';

const REFRESH_MS = 10_000;

/** What `GET /v1/requests/{id}` answers, and an item of `GET /v1/requests`. */
interface RequestRecord {
  readonly id: string;
  /** Unix seconds. */
  readonly created_at: number;
  readonly key: string;
  readonly user: string | null;
  readonly model: string;
  readonly status: string;
  readonly error_code: string | null;
  readonly finish_reasons: readonly string[];
  readonly prompt_tokens: number;
  readonly cached_tokens: number;
  readonly completion_tokens: number;
  readonly cost_micros: number;
  readonly price_version: string | null;
  readonly latency_ms: number;
  readonly first_token_ms: number | null;
}

interface RequestPage {
  readonly data: readonly RequestRecord[];
  readonly next: string | null;
}

/** The requests that have ended, the last one first, and the record of one. */
export function RequestsSection() {
  const found = useSignal<RequestRecord | null>(null);
  return (
    <>
      <h2>Requests</h2>
      <FindRequest found={found} />
      {found.value && <Record of={found.value} />}
      <Recent onOpen={(record) => (found.value = record)} />
    </>
  );
}

/** Where each page begins that was shown; the last one is shown. '' = the newest request. */
const FIRST_PAGE = [''];

function Recent({ onOpen }: { readonly onOpen: (record: RequestRecord) => void }) {
  const account = useAccount();
  const starts = useSignal<readonly string[]>(FIRST_PAGE);
  const after = starts.value.at(-1)!;
  const path = `/v1/requests?limit=${PAGE_ROWS}${after === '' ? '' : `&after=${after}`}`;
  const page = useResource(
    (signal) => askJson<RequestPage>(account, path, { signal }),
    path,
    after === '' ? REFRESH_MS : null,
  );
  return (
    <Loaded of={page}>
      {({ data, next }) =>
        data.length === 0 ? (
          <Empty title="No requests">Requests are listed here when they have ended.</Empty>
        ) : (
          <>
            <DataTable caption="Requests" columns={columnsOf(onOpen)} rows={data} idOf={placeOf} />
            <div class="row pages">
              <Button
                text="Newer"
                disabled={after === ''}
                onClick={() => (starts.value = starts.value.slice(0, -1))}
              />
              <Button
                text="Older"
                disabled={next === null}
                onClick={() => (starts.value = [...starts.value, next!])}
              />
            </div>
          </>
        )
      }
    </Loaded>
  );
}

/** Callers name requests, so several may have one id. */
const placeOf = ({ id, created_at, latency_ms }: RequestRecord): string =>
  `${id} ${created_at} ${latency_ms}`;

const tokens = (title: string, of: (record: RequestRecord) => number): Column<RequestRecord> => {
  return { title, of, show: (record) => count(of(record)), isNumber: true };
};

const columnsOf = (onOpen: (record: RequestRecord) => void): readonly Column<RequestRecord>[] => [
  {
    title: 'Time',
    of: ({ created_at }) => created_at,
    show: (record) => (
      <button type="button" class="link" title={record.id} onClick={() => onOpen(record)}>
        {dateText(record.created_at)}
      </button>
    ),
  },
  { title: 'Status', of: statusOf },
  { title: 'Model', of: ({ model }) => model, show: ({ model }) => <bdi>{model}</bdi> },
  tokens('Prompt', ({ prompt_tokens }) => prompt_tokens),
  tokens('Generated', ({ completion_tokens }) => completion_tokens),
  {
    title: 'First token',
    of: ({ first_token_ms }) => first_token_ms,
    show: ({ first_token_ms }) => milliseconds(first_token_ms),
    isNumber: true,
  },
  {
    title: 'Cost',
    of: ({ cost_micros }) => cost_micros,
    show: ({ cost_micros }) => money(cost_micros),
    isNumber: true,
  },
];

function FindRequest({ found }: { readonly found: Signal<RequestRecord | null> }) {
  const account = useAccount();
  const id = useSignal('');
  const { isBusy, failure, run } = useAction(async () => {
    found.value = null;
    const path = `/v1/requests/${encodeURIComponent(id.peek().trim())}`;
    found.value = await askJson<RequestRecord>(account, path);
  });
  return (
    <>
      <p class="quiet">
        Every answer names its request in the header <code>x-request-id</code>. The record of one that has
        ended says what it used and cost, without its text.
      </p>
      <form
        class="row"
        onSubmit={(event) => {
          event.preventDefault();
          run();
        }}
      >
        <label class="field labelled grows">
          <span>Request id</span>
          <input
            required
            spellcheck={false}
            autocomplete="off"
            placeholder="req_…"
            value={id.value}
            onInput={(event) => (id.value = event.currentTarget.value)}
          />
        </label>
        <Button class="primary" text="Show" type="submit" disabled={isBusy} />
      </form>
      <FormFault failure={failure} />
    </>
  );
}

function statusOf({ status, error_code }: RequestRecord): string {
  return error_code === null ? status : `${status}: ${error_code}`;
}

function Record({ of: record }: { readonly of: RequestRecord }) {
  const { finish_reasons } = record;
  const facts: readonly (readonly [string, string])[] = [
    ['Status', statusOf(record)],
    ['Finish reasons', finish_reasons.join(', ') || '–'],
    ['Time', dateText(record.created_at)],
    ['Duration', milliseconds(record.latency_ms)],
    ['First token after', milliseconds(record.first_token_ms)],
    ['Prompt tokens', `${count(record.prompt_tokens)}, ${count(record.cached_tokens)} of them cached`],
    ['Generated tokens', count(record.completion_tokens)],
    ['Cost', money(record.cost_micros)],
    ['Version of the price', record.price_version ?? 'no price'],
    ['Model', record.model],
    ['Key', record.key],
    ['Hash of the end user', record.user ?? 'none'],
  ];
  return (
    <section class="panel" aria-label="The request">
      <h3>
        <bdi>{record.id}</bdi>
      </h3>
      <Pairs of={facts} />
    </section>
  );
}
