import fc from 'fast-check';
import { expect, test } from 'vitest';
import { TenantLedger } from '../../../../worker/limits/usage/tenant-ledger.ts';
import { DAY_MS, dayName, monthOf, type UsageQuestion } from '../../../../worker/limits/usage/usage-sums.ts';
import { runs } from '../../../support/random.ts';
import { sqlStorage } from '../../support/sql-storage.ts';
import { EVERYTHING, recordOf } from './usage-fixtures.ts';

/** What a request adds to the ledger. */
interface Use {
  readonly day: string;
  readonly model: string;
  readonly key: string;
  readonly user: string;
  readonly cost: number;
}

/** Four months, with a leap day. */
const START = Date.UTC(2027, 11, 20);
const day = fc.integer({ min: 0, max: 110 }).map((days) => dayName(START + days * DAY_MS));
const use = fc.record({
  day,
  model: fc.constantFrom('m', 'n'),
  key: fc.constantFrom('a', 'b', 'c'),
  user: fc.constantFrom('', 'u', 'v'),
  cost: fc.nat(1_000),
});
const question = fc.record({
  from: fc.oneof(day, fc.constant(EVERYTHING.from)),
  to: fc.oneof(day, fc.constant(EVERYTHING.to)),
  groups: fc.subarray<'day' | 'model' | 'key' | 'user'>(['day', 'model', 'key', 'user'], { minLength: 1 }),
  keyId: fc.constantFrom(null, null, 'a'),
  model: fc.constantFrom(null, null, 'n'),
  endUser: fc.constantFrom(null, null, null, 'v'),
});
type Asked = Pick<UsageQuestion, 'from' | 'to' | 'keyId' | 'model' | 'endUser'> & {
  readonly groups: readonly ('day' | 'model' | 'key' | 'user')[];
};
const action = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({ kind: fc.constant('add' as const), uses: fc.array(use, { maxLength: 8 }) }),
  },
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('ask' as const), question }) },
  fc.record({ kind: fc.constant('roll up' as const), before: day }),
  fc.record({ kind: fc.constant('erase' as const), keepSums: fc.boolean() }),
  fc.record({ kind: fc.constant('restart' as const) }),
);

/** Returns the sums of a question by adding up all requests, as text. */
function expected(uses: readonly Use[], asked: Asked): string[] {
  const { from, to, groups, keyId, model, endUser } = asked;
  const isByUser = groups.includes('user') || endUser !== null;
  const wanted = uses.filter(
    (each) =>
      from <= each.day &&
      each.day <= to &&
      (keyId === null || each.key === keyId) &&
      (model === null || each.model === model) &&
      (isByUser ? each.user !== '' : true) &&
      (endUser === null || each.user === endUser),
  );
  const rows = Map.groupBy(wanted, (each) => groups.map((group) => each[group]).join(' '));
  return [...rows]
    .map(([name, all]) => `${name}: ${all.length} ${all.reduce((sum, { cost }) => sum + cost, 0)}`)
    .toSorted();
}

const recordFor = ({ day: at, model, key, user, cost }: Use) =>
  recordOf({ startedAt: Date.parse(at), model, keyId: key, endUser: user || null, cost });

test('every question has the sums of all requests, whatever was added, joined or erased since the last one', () => {
  fc.assert(
    fc.property(fc.array(action, { minLength: 5, maxLength: 30, size: 'max' }), (actions) => {
      const sql = sqlStorage();
      let ledger = new TenantLedger(sql);
      let uses: Use[] = [];
      for (const [at, step] of actions.entries()) {
        if (step.kind === 'add') {
          ledger.add(step.uses.map(recordFor), at, null);
          uses.push(...step.uses);
        } else if (step.kind === 'roll up') {
          ledger.rollUp(step.before, at);
          uses = uses.map((each) => (each.day < step.before ? { ...each, day: monthOf(each.day) } : each));
        } else if (step.kind === 'erase') {
          ledger.erase(step.keepSums, at, []);
          uses = step.keepSums
            ? uses.map((each) => ({ ...each, day: monthOf(each.day), key: '', user: '' }))
            : [];
        } else if (step.kind === 'restart') ledger = new TenantLedger(sql);
        else {
          const { rows, total } = ledger.query({ ...EVERYTHING, ...step.question }, 'acme');
          const shown = rows.map(
            (row) =>
              `${step.question.groups.map((group) => row[group]).join(' ')}: ${row.requests} ${row.cost_micros}`,
          );
          expect(shown.toSorted()).toEqual(expected(uses, step.question));
          expect(total.cost_micros).toBe(rows.reduce((sum, row) => sum + row.cost_micros, 0));
        }
      }
    }),
    { numRuns: runs(200) },
  );
});

test('a question without days reads the rows of its months once', () => {
  const sql = sqlStorage();
  const ledger = new TenantLedger(sql);
  const on = (at: string) => recordOf({ startedAt: Date.parse(at) });
  ledger.add(['2028-01-31', '2028-02-01', '2028-02-29', '2028-03-01'].map(on), 1, null);
  const months = () => sql.exec('SELECT day, requests FROM month_sums').raw();
  const ask = (from: string, to: string) =>
    ledger.query({ ...EVERYTHING, from, to, groups: ['model'] }, 'acme').rows[0]?.requests;
  expect([ask('2028-02-02', '2028-02-28'), [...months()]]).toEqual([undefined, []]);
  expect([ask('2028-01-31', '2028-02-29'), [...months()]]).toEqual([3, [['2028-02-01', 2]]]);
  expect([ask('2028-02-01', '2028-12-31'), [...months()]]).toEqual([3, [['2028-02-01', 2]]]);
  ledger.add([on('2028-02-15')], 2, null);
  expect([...months()]).toEqual([]);
  expect([ask('2028-02-01', '2028-02-29'), [...months()]]).toEqual([3, [['2028-02-01', 3]]]);
});
