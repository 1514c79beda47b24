import { type Signal, useSignal } from '@preact/signals';
import { type Column, numberColumn } from '../../controls/data-table.tsx';
import { Pairs } from '../../controls/pairs.tsx';
import { askJson, useAccount } from '../account.ts';
import type { RequestRecord } from '../api-objects.ts';
import { timeColumn } from '../columns.tsx';
import { Form } from '../form/form.tsx';
import type { FormField } from '../form/form-fields.ts';
import { count, milliseconds, momentText, money } from '../formats.ts';
import { PagedTable } from '../paged-table.tsx';

const REFRESH_MS = 10_000;

interface RequestPage {
  readonly data: readonly RequestRecord[];
  readonly next: string | null;
}

/** The requests that have ended, the last one first, and the record of one. */
export function RequestsSection() {
  const shown = useSignal<RequestRecord | null>(null);
  return (
    <>
      <h2>Requests</h2>
      <FindRequest shown={shown} />
      {shown.value && <Record of={shown.value} />}
      <PagedTable<RequestRecord, RequestPage>
        caption="Requests"
        columns={columnsOf((record) => (shown.value = record))}
        idOf={placeOf}
        path="/v1/requests"
        nextOf={({ next }) => next}
        refreshMs={REFRESH_MS}
        empty={['No requests', 'Requests are listed here when they have ended.']}
      />
    </>
  );
}

/** Callers name requests, so several may have one id. */
const placeOf = ({ id, created_at, latency_ms }: RequestRecord): string =>
  `${id} ${created_at} ${latency_ms}`;

const columnsOf = (onOpen: (record: RequestRecord) => void): readonly Column<RequestRecord>[] => [
  timeColumn(({ id }) => id, onOpen),
  { title: 'Status', of: statusOf },
  { title: 'Model', of: ({ model }) => model, show: ({ model }) => <bdi>{model}</bdi> },
  numberColumn('Prompt', ({ prompt_tokens }) => prompt_tokens),
  numberColumn('Generated', ({ completion_tokens }) => completion_tokens),
  numberColumn('First token', ({ first_token_ms }) => first_token_ms, milliseconds),
  numberColumn('Cost', ({ cost_micros }) => cost_micros, money),
];

function FindRequest({ shown }: { readonly shown: Signal<RequestRecord | null> }) {
  const account = useAccount();
  return (
    <>
      <p class="quiet">
        Every answer names its request in the header <code>x-request-id</code>. The record of one that has
        ended says what it used and cost, without its text.
      </p>
      <Form
        isRow
        action="Show"
        partsOf={() => [REQUEST_ID]}
        onSend={async (_, { id }) => {
          shown.value = null;
          shown.value = await askJson(account, `/v1/requests/${encodeURIComponent(id!.trim())}`);
        }}
      />
    </>
  );
}

const REQUEST_ID: FormField = {
  name: 'id',
  title: 'Request id',
  input: { required: true, grows: true, spellcheck: false, autocomplete: 'off', placeholder: 'req_…' },
};

function statusOf({ status, error_code }: RequestRecord): string {
  return error_code === null ? status : `${status}: ${error_code}`;
}

function Record({ of: record }: { readonly of: RequestRecord }) {
  const { finish_reasons } = record;
  const facts: readonly (readonly [string, string])[] = [
    ['Status', statusOf(record)],
    ['Finish reasons', finish_reasons.join(', ') || '–'],
    ['Time', momentText(record.created_at)],
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
