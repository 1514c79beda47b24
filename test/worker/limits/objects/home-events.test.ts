import { expect, test } from 'vitest';
import { UNLIMITED } from '../../../../shared/tenant.ts';
import type { Env } from '../../../../worker/env/env.ts';
import type { Settings } from '../../../../worker/env/settings.ts';
import { HomeEvents } from '../../../../worker/limits/objects/home-events.ts';
import { charge, emptyQuota } from '../../../../worker/limits/quota/state.ts';
import { DAY_MS, momentOf } from '../../../../worker/limits/quota/window.ts';
import type { UsageRecord } from '../../../../worker/usage/usage-record.ts';
import { sqlStorage } from '../../support/sql-storage.ts';

test('an alert of a balance occurs once, also if the balance lasts longer than all other limits', () => {
  let now = Date.UTC(2030, 0, 1);
  const settings = { ALERT_SHARES: [50] } as unknown as Settings;
  const events = new HomeEvents(sqlStorage(), { env: {} as Env, settings, now: () => now });
  const quota = emptyQuota();
  const limits = { ...UNLIMITED, creditMicros: 100, microsPerDay: 10 };
  const record = { cost: 1, tenantId: 'acme', keyId: 'key' } as UsageRecord;
  const spend = (spent: number) => {
    events.know([{ id: 'tenant', limits }]);
    charge(quota, ['tenant'], { spent }, momentOf(now));
    events.add([record], quota);
  };
  for (const [day, spent] of [
    [0, 0],
    [0, 60],
    [50, 9],
    [51, 9],
  ] as const) {
    now = Date.UTC(2030, 0, 1) + day * DAY_MS;
    spend(spent);
  }
  const sent = events.queue.due('alert', 99, now).map(({ id }) => id.split(':')[2]);
  expect(sent).toEqual(['micros_per_day', 'balance', 'micros_per_day', 'micros_per_day']);
});
