import { isEndUser } from '../end-user.ts';
import { type Counters, emptySubject, isUnused, type SubjectState } from '../quota/state.ts';
import { DAY_MS, type Meter, momentOf } from '../quota/window.ts';
import { type News, StoredValues } from './stored-values.ts';

/** Id of the tenant among its subjects. The others are its keys and its end users. */
export const TENANT = 'tenant';

/** If there are more subjects in memory, end users leave it. Their counters are stored. */
const MAX_SUBJECTS = 5_000;

/** The month of an end user is the last one in which it was charged. */
const SCHEMA = `
  CREATE TABLE IF NOT EXISTS subjects (id TEXT PRIMARY KEY, state TEXT NOT NULL) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS end_users (id TEXT PRIMARY KEY, month INTEGER NOT NULL, state TEXT NOT NULL) WITHOUT ROWID;
  CREATE INDEX IF NOT EXISTS end_users_by_month ON end_users (month);
`;
const SAVE = 'INSERT OR REPLACE INTO subjects (id, state) SELECT value->>0, value->2 FROM json_each(?)';
const SAVE_END_USERS = `
  INSERT OR REPLACE INTO end_users (id, month, state)
  SELECT value->>0, value->>1, value->2 FROM json_each(?)`;
const DELETE = 'DELETE FROM subjects WHERE id IN (SELECT value FROM json_each(?))';

/** Rows per statement. They are bound as one JSON value, which holds at most 2 MB. */
const ROWS_PER_STATEMENT = 100;

type OldPeriod = { readonly period: number; readonly used: number };

/** Version 0.2.0 stored two periods as objects, and the slots as a number. */
function subjectOf(stored: SubjectState & { readonly running?: number }): SubjectState {
  const { running, day, month, ...rest } = stored;
  if (running === undefined) return { ...emptySubject(), ...stored };
  const meterOf = ({ period, used }: OldPeriod): Meter => [[period, used]];
  const [today, thisMonth] = [day, month].map((old) => meterOf(old as unknown as OldPeriod));
  return { ...emptySubject(), ...rest, day: today!, month: thisMonth!, concurrency: [[0, running]] };
}

/** The counters of a tenant, its keys and its end users, of whom those in use are in memory. */
export class StoredCounters extends StoredValues<SubjectState> implements Counters {
  readonly #sql: SqlStorage;

  constructor(sql: SqlStorage) {
    super();
    this.#sql = sql;
    sql.exec(SCHEMA);
    const rows = sql.exec<{ id: string; state: string }>('SELECT id, state FROM subjects').toArray();
    for (const { id, state } of rows) this.values.set(id, subjectOf(JSON.parse(state) as SubjectState));
  }

  override get(id: string): SubjectState | undefined {
    return this.values.get(id) ?? (isEndUser(id) ? this.#load(id) : undefined);
  }

  #load(id: string): SubjectState {
    const [row] = this.#sql.exec<{ state: string }>('SELECT state FROM end_users WHERE id = ?', id).toArray();
    const state = row ? subjectOf(JSON.parse(row.state) as SubjectState) : emptySubject();
    this.values.set(id, state);
    return state;
  }

  override restore(news: News<SubjectState>): void {
    super.restore(news.map(([id, state]) => [id, state && subjectOf(state)]));
  }

  override takeNews(): News<SubjectState> {
    const news = super.takeNews();
    if (this.values.size > MAX_SUBJECTS)
      for (const id of this.values.keys())
        if (isEndUser(id) && !this.unwritten.has(id)) this.values.delete(id);
    return news;
  }

  protected override isInTable(): boolean {
    return true;
  }

  override write(): void {
    const all = [...this.unwritten].flatMap((id) => {
      const state = this.values.get(id);
      return state ? [[id, state.month.at(-1)?.[0] ?? 0, state] as const] : [];
    });
    this.unwritten.clear();
    this.#each(
      SAVE,
      all.filter(([id]) => !isEndUser(id)),
    );
    this.#each(
      SAVE_END_USERS,
      all.filter(([id]) => isEndUser(id)),
    );
  }

  #each(sql: string, all: readonly unknown[]): void {
    for (let from = 0; from < all.length; from += ROWS_PER_STATEMENT)
      this.#sql.exec(sql, JSON.stringify(all.slice(from, from + ROWS_PER_STATEMENT)));
  }

  /**
   * Drops the counters of keys that no window counts any more, and those of end users idle for a month, the
   * longest window. To be called after a checkpoint.
   * @returns the ids of these keys
   */
  dropUnused(now: number): readonly string[] {
    // After a restart, the clock may be back in the day or month before.
    const at = momentOf(now - DAY_MS);
    const unused = this.all().filter(([id, state]) => id !== TENANT && isUnused(state, at));
    const ids = unused.map(([id]) => id);
    for (const id of ids) this.values.delete(id);
    this.#each(DELETE, ids);
    this.#sql.exec('DELETE FROM end_users WHERE month < ?', momentOf(now).month - 1);
    return ids;
  }
}
