import { errorMessage } from '@continuo/shared/error-details.ts';
import { requireInTime } from '@continuo/shared/time-limit.ts';
import type { Env } from '../env/env.ts';
import type { Settings } from '../env/settings.ts';
import { OwnChanges } from '../tenants/own-changes.ts';
import { afterAlone } from '../timers/request-timers.ts';
import {
  type Catalogue,
  createCandidate,
  createCatalogue,
  createUpstreamState,
  type UpstreamState,
} from './pool.ts';
import type { Candidate } from './routed-upstream.ts';
import { parseUpstream, parseUpstreams } from './upstream-config.ts';
import { readUpstreams, type StoredUpstream, storedForm } from './upstream-store.ts';

/** A list is read again in the background after this time. */
const REFRESH_MS = 30_000;
/** A request waits for a new list if the known one is this old: a change is known everywhere by then. */
const LIST_TTL_MS = 60_000;
/** If the database fails, the list is read again after this time. */
const RETRY_MS = 5_000;
const READ_WITHIN_MS = 2_000;

/** Takes work that goes on after the response. */
type Background = (work: Promise<unknown>) => void;

/** Returns the upstreams of the variables. @throws Error that says what is wrong with them */
export const upstreamsOfVariables = (settings: Settings): StoredUpstream[] =>
  parseUpstreams(settings).map(storedForm);

/** Returns why an upstream cannot be used here; null if it can. */
export function faultOf({ name, config }: StoredUpstream, settings: Settings, env: Env): string | null {
  try {
    createCandidate(parseUpstream(name, config), settings, env, () => 0);
    return null;
  } catch (thrown) {
    return errorMessage(thrown);
  }
}

interface Entry {
  readonly config: string;
  readonly candidate: Candidate;
}

/**
 * The upstreams of an isolate or an object: those of the database, or those of the variables if it has none.
 * While the database fails, the last list counts. One that cannot be used here is logged and left out.
 */
export class UpstreamDirectory {
  readonly #env: Env;
  readonly #settings: Settings;
  readonly #now: () => number;
  readonly #changes: OwnChanges;
  readonly #state: UpstreamState;
  readonly #variables: readonly StoredUpstream[];
  #entries: ReadonlyMap<string, Entry> = new Map();
  /** The rows that the catalogue is made of. */
  #rows = '';
  #catalogue: Catalogue;
  /** The database has answered or failed. Before that, each request waits for it. */
  #isRead = false;
  #readAt = Number.NEGATIVE_INFINITY;
  #nextReadAt = Number.NEGATIVE_INFINITY;
  /** Number of reads that have begun. */
  #begun = 0;
  /** The latest read whose result counts, or that is older than a change. Earlier ones are outdated. */
  #counted = 0;

  /** @throws Error that says what is wrong with the variables */
  constructor(env: Env, settings: Settings, now: () => number) {
    this.#env = env;
    this.#settings = settings;
    this.#now = now;
    this.#changes = new OwnChanges(now);
    this.#state = createUpstreamState(settings, now);
    this.#variables = upstreamsOfVariables(settings);
    this.#catalogue = this.#catalogueOf(this.#variables, (_, fault) => {
      throw new Error(fault);
    });
  }

  /**
   * Returns the catalogue of a list that is at most a minute old. Never fails.
   * @param background reads the next list while this one is used; absent = the caller waits for it
   */
  async catalogue(db: D1Database, background?: Background): Promise<Catalogue> {
    const now = this.#now();
    // The clock may have stepped back.
    if (now < this.#nextReadAt && now >= this.#readAt) return this.#catalogue;
    const isFresh = now < this.#readAt + LIST_TTL_MS;
    // Meanwhile, other requests use the known list.
    if (this.#isRead) this.#nextReadAt = now + RETRY_MS;
    const reading = this.#read(db, now);
    background?.(reading);
    if (!isFresh || !background) await reading;
    return this.#catalogue;
  }

  /** The next request reads the list again, after a change by this isolate. */
  forget(): void {
    this.#changes.note();
    this.#counted = this.#begun;
    this.#readAt = Number.NEGATIVE_INFINITY;
    this.#nextReadAt = Number.NEGATIVE_INFINITY;
  }

  async #read(db: D1Database, now: number): Promise<void> {
    this.#begun += 1;
    const turn = this.#begun;
    try {
      const reading = readUpstreams(db, now, this.#changes.session);
      const rows = await requireInTime(reading, { after: afterAlone, ms: READ_WITHIN_MS });
      if (turn <= this.#counted) return;
      this.#counted = turn;
      this.#use(rows);
      this.#readAt = now;
      this.#nextReadAt = now + REFRESH_MS;
    } catch (thrown) {
      this.#nextReadAt = now + RETRY_MS;
      console.error(JSON.stringify({ event: 'upstreams_unknown', message: errorMessage(thrown) }));
    }
    this.#isRead = true;
  }

  #use(stored: readonly StoredUpstream[]): void {
    const isSet = stored.some(({ removedAt }) => removedAt === null);
    const rows = isSet ? stored : this.#variables;
    const text = JSON.stringify(rows);
    if (text === this.#rows) return;
    this.#rows = text;
    this.#catalogue = this.#catalogueOf(rows, (upstream, message) =>
      console.error(JSON.stringify({ event: 'upstream_invalid', upstream, message })),
    );
  }

  /** Returns the catalogue of these upstreams; the last one if none of them can be used. */
  #catalogueOf(
    rows: readonly StoredUpstream[],
    onFault: (upstream: string, fault: string) => void,
  ): Catalogue {
    const entries = new Map<string, Entry>();
    for (const row of rows) {
      try {
        entries.set(row.name, this.#entryOf(row));
      } catch (thrown) {
        onFault(row.name, errorMessage(thrown));
      }
    }
    const partOf = (isRemoved: boolean): Candidate[] =>
      rows
        .filter(({ removedAt }) => (removedAt !== null) === isRemoved)
        .flatMap(({ name }) => entries.get(name)?.candidate ?? []);
    const candidates = partOf(false);
    if (candidates.length === 0) return this.#catalogue;
    const { lists, health } = this.#state;
    for (const [name, before] of this.#entries) {
      if (entries.get(name) === before) continue;
      lists.forget(name);
      health.forget(name);
    }
    this.#entries = entries;
    const removed = partOf(true).map(({ upstream }) => upstream);
    return createCatalogue({ candidates, removed }, this.#state, this.#settings, this.#now);
  }

  /** Upstreams that stay keep what this isolate knows of them. */
  #entryOf({ name, config }: StoredUpstream): Entry {
    const before = this.#entries.get(name);
    if (before?.config === config) return before;
    const parsed = parseUpstream(name, config);
    return { config, candidate: createCandidate(parsed, this.#settings, this.#env, this.#now) };
  }
}
