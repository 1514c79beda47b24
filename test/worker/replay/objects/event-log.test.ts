import { expect, test } from 'vitest';
import { EventLog, endOf } from '../../../../worker/replay/objects/event-log.ts';
import { sqlStorage } from '../../support/sql-storage.ts';

const clock = { now: 1e12 };

const emptyLog = (sql = sqlStorage()): EventLog => new EventLog(sql, () => clock.now);

const PIECE = 65_536;

/** Returns the text of all events after one. */
function textAfter(log: EventLog, id: number): string {
  const chunk = log.after(endOf(id));
  expect(chunk?.isLast ?? true).toBe(true);
  return Buffer.from(chunk?.bytes ?? []).toString();
}

test('reads a long stream in pieces, complete and in order, from any event on', () => {
  const log = emptyLog();
  log.begin('acme', {});
  const events = Array.from({ length: 5000 }, (_, index) => `data: ${index} `.padEnd(index % 200, 'x'));
  events.push('data: '.padEnd(50 * PIECE, 'né🙂'), 'data: [DONE]');
  log.append(events.slice(0, 3000));
  log.append(events.slice(3000));
  for (const from of [0, 1, 4999, 5000, 5001, 5002]) {
    const read: Uint8Array[] = [];
    for (let position = endOf(from); ; ) {
      const chunk = log.after(position);
      if (chunk === null) break;
      expect(chunk.bytes.length).toBeLessThan(2 * PIECE);
      read.push(chunk.bytes);
      position = chunk.position;
    }
    const sent = events.map((event, index) => `id: ${index + 1}\n${event}\n\n`);
    expect(Buffer.concat(read).toString() === sent.slice(from).join('')).toBe(true);
  }
});

test('writes events together, at the latest after a second or at the end, and gives them to readers before', () => {
  const sql = sqlStorage();
  const log = emptyLog(sql);
  const stored = () => sql.exec<{ id: number }>('SELECT id FROM pieces').toArray().length;
  log.begin('acme', {});
  for (let event = 1; event <= 3; event++) log.append([`data: ${event}`]);
  expect([stored(), log.lastId()]).toEqual([0, 3]);
  expect(textAfter(log, 1)).toBe('id: 2\ndata: 2\n\nid: 3\ndata: 3\n\n');
  clock.now += 1000;
  log.append(['data: 4']);
  expect(stored()).toBe(4);
  log.append(['data: 5']);
  expect(textAfter(log, 3)).toBe('id: 4\ndata: 4\n\nid: 5\ndata: 5\n\n');
  log.end();
  expect(stored()).toBe(5);
  expect(textAfter(emptyLog(sql), 4)).toBe('id: 5\ndata: 5\n\n');
});

test('writes 64 KiB at once', () => {
  const sql = sqlStorage();
  const log = emptyLog(sql);
  log.begin('acme', {});
  log.append(['data: '.padEnd(PIECE, 'x')]);
  expect(emptyLog(sql).lastId()).toBe(1);
});

test('gives what ends a lost stream to a reader of events that were never written', () => {
  const sql = sqlStorage();
  const lost = emptyLog(sql);
  lost.begin('acme', {});
  for (let event = 1; event <= 3; event++) lost.append([`data: ${event}`]);
  const log = emptyLog(sql);
  log.skip();
  log.append(['data: error', 'data: [DONE]']);
  log.end();
  expect(textAfter(log, 3)).toMatch(/^id: \d+\ndata: error\n\nid: \d+\ndata: \[DONE\]\n\n$/);
  expect(log.lastId()).toBeGreaterThan(3);
});
