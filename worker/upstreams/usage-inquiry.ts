import type { KnownAccount, ListedAccount } from '@continuo/shared/usage.ts';
import type { Env } from '../env/env.ts';
import { parseSettings } from '../env/settings.ts';
import type { Catalogue } from './pool.ts';
import { UpstreamDirectory } from './upstream-directory.ts';

const ACCOUNT_TIMEOUT_MS = 5_000;

/** Asks upstreams what ended requests have used. Never fails, for example because a variable is invalid. */
export class UsageInquiry {
  readonly #env: Env;
  #directory: UpstreamDirectory | null = null;

  constructor(env: Env) {
    this.#env = env;
  }

  /** Returns the accounts whose names begin with this text; null if they are not known now. */
  async accountsUnder(prefix: string): Promise<readonly ListedAccount[] | null> {
    try {
      const upstreams = await this.#upstreams();
      return await upstreams.accountsUnder(prefix, AbortSignal.timeout(ACCOUNT_TIMEOUT_MS));
    } catch {
      return null;
    }
  }

  /** An upstream that cannot be asked leaves the answer incomplete. @param upstream null = asks all */
  async usageOf(account: string, upstream: string | null): Promise<KnownAccount> {
    try {
      const upstreams = await this.#upstreams();
      return await upstreams.usageOf(account, upstream, AbortSignal.timeout(ACCOUNT_TIMEOUT_MS));
    } catch {
      return { account: null, complete: false };
    }
  }

  async #upstreams(): Promise<Catalogue> {
    this.#directory ??= new UpstreamDirectory(this.#env, parseSettings(this.#env), Date.now);
    return this.#directory.catalogue(this.#env.DB);
  }
}
