/** What a key or an account may use, and has used, by the names of the limits. Null = no limit. */
export interface LimitHolder {
  readonly name: string;
  readonly limits: Readonly<Record<string, number | null>>;
  readonly used: Readonly<Record<string, number>>;
  readonly left: Readonly<Record<string, number | null>>;
}

/** A share of a limit of money was reached. */
export interface LimitAlert {
  /** Id of the key; null = a limit of the account. */
  readonly key: string | null;
  readonly limit: string;
  readonly period: string;
  readonly share_percent: number;
  readonly limit_micros: number;
  /** Unix seconds. */
  readonly reached_at: number;
}

/** What `GET /v1/key` answers, as far as it is shown. */
export interface OwnKey extends LimitHolder {
  readonly id: string;
  readonly scopes: readonly string[];
  /** Of an admin key: `owner`, `billing`, `read-only` or `tenant:ID`; null = it is none. */
  readonly role: string | null;
  /** Null = all. */
  readonly models: readonly string[] | null;
  /** Unix seconds; null = never. */
  readonly expires_at: number | null;
  readonly allowed_addresses: readonly string[] | null;
  readonly alerts: readonly LimitAlert[];
  readonly tenant: LimitHolder & { readonly id: string; readonly balance_micros: number | null };
}
