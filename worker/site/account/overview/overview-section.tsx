import { Bar } from '../../controls/bar.tsx';
import { type Column, DataTable } from '../../controls/data-table.tsx';
import { Pairs } from '../../controls/pairs.tsx';
import { useOwnKey } from '../account.ts';
import type { LimitAlert, LimitHolder, OwnKey } from '../api-objects.ts';
import {
  amount,
  clockText,
  dateText,
  duration,
  isMoney,
  limitName,
  money,
  relative,
  secondsToReset,
} from '../formats.ts';
import { type Resource, useServerNow } from '../resource.ts';
import { Empty } from '../states.tsx';

/** What the key and its account may use, and what is left of it. */
export function OverviewSection({ ownKey: { at } }: { readonly ownKey: Resource<OwnKey> }) {
  const ownKey = useOwnKey();
  const now = useServerNow();
  return (
    <>
      <h2>Limits and balance</h2>
      <Facts ownKey={ownKey} now={now / 1000} />
      <Counted ownKey={ownKey} now={now} />
      <p class="quiet figures">As of {clockText(at)}, by the clock of the server. Read again every 5 s.</p>
      <OtherLimits ownKey={ownKey} />
      <Alerts alerts={ownKey.alerts} now={now / 1000} />
    </>
  );
}

const SCOPES: Readonly<Record<string, string>> = {
  completions: 'Completions and batches',
  models: 'List of models',
  keys: 'Managing keys',
  admin: 'Managing the endpoint',
};

function Facts({ ownKey, now }: { readonly ownKey: OwnKey; readonly now: number }) {
  const { expires_at: end, models, allowed_addresses: networks, scopes, tenant } = ownKey;
  const { balance_micros: balance } = tenant;
  const ends = (at: number) => (
    <>
      {relative(at, now)} <span class="quiet">{dateText(at)}</span>
    </>
  );
  return (
    <Pairs
      class="panel pairs"
      of={[
        ['Balance', balance === null ? null : <span class="large">{money(balance)}</span>],
        ['This key ends', end === null ? 'Never' : ends(end)],
        ['It is for', scopes.map((scope) => SCOPES[scope] ?? scope).join(' · ') || 'Nothing'],
        ['Models', models === null ? 'All' : models.join(', ')],
        ['Networks', networks?.join(', ') ?? null],
      ]}
    />
  );
}

/** A soft limit counts what its hard one counts, and is left out of what is left. */
const countedAs = (limit: string): string => limit.replace('soft_', '');
const isCounted = (limit: string, { used }: LimitHolder): boolean => countedAs(limit) in used;

/** Limits of days and months. Soft ones are shown if there are any. */
function Counted({ ownKey, now }: { readonly ownKey: OwnKey; readonly now: number }) {
  const { tenant } = ownKey;
  const names = Object.keys(ownKey.limits).filter((limit) => isCounted(limit, ownKey));
  const shown = names.filter((limit) => limit in ownKey.used || ownKey.limits[limit] || tenant.limits[limit]);
  return (
    <div class="limits">
      {shown.map((limit) => (
        <section key={limit} class="panel" aria-label={limitName(limit)}>
          <h3>
            {limitName(limit)}{' '}
            <span class="quiet figures">begins again in {duration(secondsToReset(limit, now) ?? 0)}</span>
          </h3>
          <div class="limit-pair figures">
            <span class="quiet">Account</span>
            <LimitBar of={tenant} limit={limit} owner="the account" />
            <span class="quiet">This key</span>
            <LimitBar of={ownKey} limit={limit} owner="this key" />
          </div>
        </section>
      ))}
    </div>
  );
}

interface LimitBarProps {
  readonly of: LimitHolder;
  /** Name of a limit of a day or month. */
  readonly limit: string;
  /** Whose limit it is, for screen readers. */
  readonly owner: string;
}

/** What is used of a limit, as a bar and in numbers. Without a limit, only what is used. */
function LimitBar({ of: { limits, used, left }, limit, owner }: LimitBarProps) {
  const most = limits[limit] ?? null;
  const spent = used[countedAs(limit)] ?? 0;
  const shown = (value: number) => amount(limit, value);
  if (most === null) return <span class="quiet">{shown(spent)} used, no limit</span>;
  const rest = left[limit] ?? Math.max(0, most - spent);
  return (
    <div class={`limit-bar ${rest === 0 ? 'full' : ''}`}>
      <Bar
        role="meter"
        label={`${limitName(limit)} of ${owner}`}
        value={Math.min(spent, most)}
        max={most}
        text={`${shown(spent)} of ${shown(most)} used`}
      />
      <span>
        <strong>{shown(rest)} left</strong>{' '}
        <span class="quiet">
          {shown(spent)} of {shown(most)} used
        </span>
      </span>
    </div>
  );
}

/** Limits without a count that outlasts a request: rates, places and sizes. */
function OtherLimits({ ownKey }: { readonly ownKey: OwnKey }) {
  const names = Object.keys(ownKey.limits).filter((limit) => !isCounted(limit, ownKey));
  const set = names.filter((limit) => ownKey.limits[limit] != null || ownKey.tenant.limits[limit] != null);
  const column = (title: string, { limits }: LimitHolder): Column<{ readonly id: string }> => ({
    title,
    of: ({ id }) => limits[id] ?? null,
    show: ({ id }) => (limits[id] == null ? null : amount(id, limits[id])),
    isNumber: true,
  });
  return (
    <section class="stack">
      <h2>Rates and sizes</h2>
      {set.length === 0 ? (
        <p class="quiet">Neither the key nor the account has such limits.</p>
      ) : (
        <DataTable
          caption="Rates and sizes"
          columns={[
            { title: 'Limit', of: ({ id }) => limitName(id) },
            column('Account', ownKey.tenant),
            column('This key', ownKey),
          ]}
          rows={set.map((id) => ({ id }))}
        />
      )}
      <p class="quiet">What is left of a minute is in the headers of each completion.</p>
    </section>
  );
}

function Alerts({ alerts, now }: { readonly alerts: readonly LimitAlert[]; readonly now: number }) {
  return (
    <section class="stack">
      <h2>Alerts</h2>
      {alerts.length === 0 ? (
        <Empty title="No alerts">Shares of limits of money that are reached are listed here.</Empty>
      ) : (
        <ul class="alerts figures">
          {alerts.map(({ key, limit, period, share_percent, limit_micros, reached_at }) => (
            <li key={`${key} ${limit} ${period} ${share_percent} ${limit_micros}`}>
              <strong>{share_percent} %</strong> of {isMoney(limit) ? limitName(limit) : limit} (
              {money(limit_micros)}) of {key === null ? 'the account' : 'this key'}{' '}
              <span class="quiet" title={dateText(reached_at)}>
                {period}, reached {relative(reached_at, now)}
              </span>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}
