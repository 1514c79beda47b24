import { type Signal, signal } from '@preact/signals';
import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import { type SendOptions, send } from '../api/client.ts';
import { RequestFailure } from '../api/request-failure.ts';
import type { MadeKey, OwnKey } from './api-objects.ts';
import { type ServerClock, serverClock } from './server-clock.ts';

/** The account of one key: how the view asks the server about it. */
export interface Account {
  readonly clock: ServerClock;
  /** The server has refused the key since the view was opened; null = it has not. */
  readonly refusal: Signal<RequestFailure | null>;
  /** Why a request failed whose dialog had been closed; null = none. */
  readonly lateFailure: Signal<RequestFailure | null>;
  /** New keys until the visitor has stored them. */
  readonly made: Signal<readonly MadeKey[]>;
  /** The key in use, as the server saw it last; null before its first answer. */
  readonly ownKey: Signal<OwnKey | null>;
  readonly apiKey: string;
  /** Sends one request. @throws RequestFailure; the signal's reason if it is aborted */
  ask(path: string, options?: SendOptions): Promise<Response>;
}

export function openAccount(apiKey: string, deviceNow: () => number): Account {
  const clock = serverClock(deviceNow);
  const refusal = signal<RequestFailure | null>(null);
  return {
    clock,
    refusal,
    lateFailure: signal(null),
    made: signal([]),
    ownKey: signal(null),
    apiKey,
    async ask(path, options) {
      try {
        const response = await send({ key: apiKey, dialect: null }, path, options);
        clock.note(response.headers);
        return response;
      } catch (thrown) {
        if (thrown instanceof RequestFailure && thrown.status === 401) refusal.value = thrown;
        throw thrown;
      }
    },
  };
}

/** Returns the JSON of an answer. The caller states the type. */
export const askJson = async <T>(account: Account, path: string, options?: SendOptions): Promise<T> =>
  (await (await account.ask(path, options)).json()) as T;

interface Page<T> {
  readonly data: readonly T[];
  readonly has_more: boolean;
}

const PAGE = '1000';

/** Returns all items of a list, which has pages. @param query beside those of the page */
export async function askAll<T extends { readonly id: string }>(
  account: Account,
  path: string,
  signal: AbortSignal,
  query: Readonly<Record<string, string>> = {},
): Promise<readonly T[]> {
  const all: T[] = [];
  for (;;) {
    const search = new URLSearchParams({ ...query, limit: PAGE, after: all.at(-1)?.id ?? '' });
    const page = await askJson<Page<T>>(account, `${path}?${search}`, { signal });
    all.push(...page.data);
    if (!page.has_more) return all;
  }
}

export const AccountContext = createContext<Account | null>(null);

export function useAccount(): Account {
  const account = useContext(AccountContext);
  if (account === null) throw new Error('There is no AccountContext.Provider.');
  return account;
}

/** Returns the key in use, below the view that waits for it. */
export const useOwnKey = (): OwnKey => useAccount().ownKey.value!;
