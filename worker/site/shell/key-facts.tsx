import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { type Key, type LimitHolder, loadKey } from '../store/key-record.ts';
import { useSession } from '../store/session.ts';

const money = (micros: number): string =>
  (micros / 1_000_000).toLocaleString('en', { minimumFractionDigits: 2, maximumFractionDigits: 6 });

const isMoney = (limit: string): boolean => limit.includes('micros');

/** Returns a limit as people name it, such as `money per day`. */
const nameOf = (limit: string): string => limit.replace('micros', 'money').replaceAll('_', ' ');

function useOf({ limits, used }: LimitHolder, limit: string): string {
  const shown = (value: number) => (isMoney(limit) ? money(value) : value.toLocaleString('en'));
  const [most, spent] = [limits[limit] ?? null, used[limit]];
  if (spent === undefined) return most === null ? 'no limit' : shown(most);
  return most === null ? `${shown(spent)} used` : `${shown(spent)} of ${shown(most)} used`;
}

const dateOf = (seconds: number): string =>
  new Date(seconds * 1000).toLocaleString('en-GB', { dateStyle: 'long', timeStyle: 'short' });

/** What the server knows about the key in use: expiry, balance, limits and use. Nothing until it answers. */
export function KeyFacts() {
  const { connection } = useSession();
  const key = useSignal<Key | null>(null);
  useEffect(() => {
    const closed = new AbortController();
    // The dialog is of use without it.
    loadKey(connection.peek(), closed.signal).then(
      (fresh) => (key.value = fresh),
      () => undefined,
    );
    return () => closed.abort();
  }, []);
  return key.value && <KeyTable of={key.value} />;
}

function KeyTable({ of: key }: { readonly of: Key }) {
  const { tenant, scopes, models, expires_at: expiry } = key;
  const isShown = (limit: string) =>
    [key, tenant].some(({ limits, used }) => limits[limit] != null || used[limit] !== undefined);
  const limits = Object.keys(key.limits).filter(isShown);
  return (
    <section class="key-facts figures" aria-label="About this key">
      <p>
        <strong>{key.name}</strong> of {tenant.name}, for {scopes.join(', ')}
        {models === null ? '' : ` with ${models.join(', ')}`}
      </p>
      <p>{expiry === null ? 'Does not expire' : `Expires on ${dateOf(expiry)}`}</p>
      {tenant.balance_micros !== null && <p>Balance of the account: {money(tenant.balance_micros)}</p>}
      <table>
        <thead>
          <tr>
            <th>Limit</th>
            <th>This key</th>
            <th>Account</th>
          </tr>
        </thead>
        <tbody>
          {limits.map((limit) => (
            <tr key={limit}>
              <th scope="row">{nameOf(limit)}</th>
              <td>{useOf(key, limit)}</td>
              <td>{useOf(tenant, limit)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
