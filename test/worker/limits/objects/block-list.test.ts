import { expect, test } from 'vitest';
import { BlockList } from '../../../../worker/limits/objects/block-list.ts';
import { KeyDirectory } from '../../../../worker/tenants/key-directory.ts';
import type { StoredKey } from '../../../../worker/tenants/stored-key.ts';
import { randomFrom, runs } from '../../../support/random.ts';
import { sqlStorage } from '../../support/sql-storage.ts';

const START = Date.UTC(2026, 0, 1);
const MINUTE_MS = 60_000;
const DAY_MS = 1_440 * MINUTE_MS;

test('the limiter stores the keys that were revoked within two days, and a suspension for as long as it lasts', () => {
  const sql = sqlStorage();
  const blocks = new BlockList(sql, START);
  blocks.set(null, true, START);
  for (let hour = 0; hour < 2_400; hour += 1) blocks.set(`key-${hour}`, true, START + (hour * DAY_MS) / 24);
  const stored = sql.exec<{ count: number }>('SELECT COUNT(*) AS count FROM blocked').one().count;
  expect(stored).toBeLessThanOrEqual(1 + 48);
  expect(blocks.of('key-2399')).toBe('suspended');
  blocks.set(null, false, START + 100 * DAY_MS);
  expect([blocks.of('key-2399'), blocks.of('key-2000')]).toEqual(['revoked', null]);
});

test('the keys that an older Worker has blocked stay so for a day', () => {
  const sql = sqlStorage();
  sql.exec('CREATE TABLE blocked (id TEXT PRIMARY KEY) WITHOUT ROWID');
  sql.exec("INSERT INTO blocked (id) VALUES (?), ('tenant')", 'old');
  new BlockList(sql, START).set(null, false, START);
  expect(new BlockList(sql, START + DAY_MS - 1).of('old')).toBe('revoked');
  // After a roll back and forward.
  sql.exec('INSERT OR IGNORE INTO blocked (id) VALUES (?)', 'older');
  const later = new BlockList(sql, START + DAY_MS);
  expect([later.of('old'), later.of('older')]).toEqual([null, 'revoked']);
});

/** A copy of the database lags by less than this. */
const LAG_MS = 12 * 60 * MINUTE_MS;

/**
 * Presents a key in some isolates while it is revoked, copies of the database lag and the database fails.
 * Returns when it was accepted.
 */
async function present(random: () => number, revokedAt: number): Promise<number[]> {
  let now = START;
  let fails = false;
  const sql = sqlStorage();
  let blocks = new BlockList(sql, now);
  const isolates = Array.from({ length: 3 }, () => new KeyDirectory(() => now));
  const read = async () => {
    if (fails) throw new Error('unreachable');
    const isRevoked = now - random() * LAG_MS >= revokedAt;
    const key = { hash: '', principal: { key: { revokedAt: isRevoked ? revokedAt : null } } } as StoredKey;
    return { key, fromCopy: true };
  };
  const accepted: number[] = [];
  let told = false;
  for (let others = 0; now < START + 3 * DAY_MS; now += Math.ceil(random() * 10 * MINUTE_MS)) {
    if (random() < 0.2) fails = random() < 0.5;
    if (random() < 0.2) blocks.set(`other-${others++}`, true, now);
    if (random() < 0.2) blocks = new BlockList(sql, now);
    if (!told && now >= revokedAt) blocks.set('key', (told = true), now);
    const isolate = isolates[Math.floor(3 * random())]!;
    const found = await isolate.find('key', read).catch(() => null);
    if (found?.key?.principal.key.revokedAt === null && blocks.of('key') === null) accepted.push(now);
  }
  return accepted;
}

test('a revoked key is never accepted again, also while the database fails, copies of it lag, and after its block has left', async () => {
  const random = randomFrom(36);
  for (let run = 0; run < runs(200); run += 1) {
    const revokedAt = START + Math.floor(random() * DAY_MS);
    const accepted = await present(random, revokedAt);
    expect(accepted.filter((at) => at >= revokedAt)).toEqual([]);
    expect(accepted.length).toBeGreaterThan(0);
  }
});
