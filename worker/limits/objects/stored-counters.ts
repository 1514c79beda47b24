import { isEndUser } from '../end-user.ts';
import { type Counters, emptySubject, isUnused, type SubjectState } from '../quota/state.ts';
import { type Meter, momentOf } from '../quota/window.ts';
import { Table } from '../usage/object-tables.ts';
import { DAY_MS } from '../usage/usage-sums.ts';
import { type News, StoredValues } from './stored-values.ts';

/** Id of the tenant among its subjects. The others are its keys and its end users. */
export const TENANT = 'tenant';

/** If there are more subjects in memory, end users leave it. Their counters are stored. */
const MAX_SUBJECTS = 5_000;

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
  readonly #subjects: Table<'subjects'>;
  readonly #endUsers: Table<'end_users'>;

  constructor(sql: SqlStorage) {
    super();
    this.#subjects = new Table(sql, 'subjects');
    this.#endUsers = new Table(sql, 'end_users');
    for (const { id, state } of this.#subjects.rows())
      this.values.set(id, subjectOf(JSON.parse(state) as SubjectState));
  }

  override get(id: string): SubjectState | undefined {
    return this.values.get(id) ?? (isEndUser(id) ? this.#load(id) : undefined);
  }

  #load(id: string): SubjectState {
    const [row] = this.#endUsers.rows('WHERE id = ?', id);
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
    for (const id of this.unwritten) {
      const value = this.values.get(id);
      if (!value) continue;
      const [state, month] = [JSON.stringify(value), value.month.at(-1)?.[0] ?? 0];
      if (isEndUser(id)) this.#endUsers.put({ id, month, state });
      else this.#subjects.put({ id, state });
    }
    this.unwritten.clear();
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
    for (const id of ids) {
      this.values.delete(id);
      this.#subjects.delete('id = ?', id);
    }
    this.#endUsers.delete('month < ?', momentOf(now).month - 1);
    return ids;
  }
}
