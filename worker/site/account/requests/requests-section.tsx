import { useSignal } from '@preact/signals';
import { Button } from '../../controls/button.tsx';
import { askJson, useAccount } from '../account.ts';
import { count, dateText, milliseconds, money } from '../formats.ts';
import { useAction } from '../resource.ts';
import { FormFault } from '../states.tsx';

/** What `GET /v1/requests/{id}` answers. */
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

/** The record of one request. The API has no list of them. */
export function RequestsSection() {
  const account = useAccount();
  const id = useSignal('');
  const found = useSignal<RequestRecord | null>(null);
  const { isBusy, failure, run } = useAction(async () => {
    found.value = null;
    const path = `/v1/requests/${encodeURIComponent(id.peek().trim())}`;
    found.value = await askJson<RequestRecord>(account, path);
  });
  return (
    <>
      <h2>Find a request</h2>
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
      {found.value && <Record of={found.value} />}
    </>
  );
}

function Record({ of: record }: { readonly of: RequestRecord }) {
  const { status, error_code, finish_reasons } = record;
  const facts: readonly (readonly [string, string])[] = [
    ['Status', error_code === null ? status : `${status}: ${error_code}`],
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
      <dl class="pairs figures">
        {facts.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}
