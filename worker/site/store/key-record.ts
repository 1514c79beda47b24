import { type Connection, requestJson } from '../api/client.ts';

/** What a key or an account may use, and has used, by the names of the limits. Null = no limit. */
export interface LimitHolder {
  readonly name: string;
  readonly limits: Readonly<Record<string, number | null>>;
  readonly used: Readonly<Record<string, number>>;
}

/** What `GET /v1/key` answers, as far as it is shown. */
export interface Key extends LimitHolder {
  readonly scopes: readonly string[];
  /** Null = all. */
  readonly models: readonly string[] | null;
  /** Unix seconds; null = never. */
  readonly expires_at: number | null;
  readonly tenant: LimitHolder & { readonly balance_micros: number | null };
}

/** Asks the server about the key in use. @throws RequestFailure; the signal's reason if it is aborted */
export const loadKey = (connection: Connection, signal: AbortSignal): Promise<Key> =>
  requestJson<Key>(connection, '/v1/key', { signal });
