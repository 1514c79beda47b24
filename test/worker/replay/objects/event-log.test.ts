import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { EventLog, endOf } from '../../../../worker/replay/objects/event-log.ts';

/** Returns a log in Node's SQLite instead of a Durable Object's. */
function emptyLog(): EventLog {
  const database = new DatabaseSync(':memory:');
  const exec = (sql: string, ...values: (string | number | ArrayBuffer)[]) => {
    if (values.length === 0 && sql.includes('CREATE')) return database.exec(sql);
    const bound = values.map((value) => (value instanceof ArrayBuffer ? new Uint8Array(value) : value));
    const rows = database.prepare(sql).iterate(...bound);
    // In a Durable Object, statements run at once, even if their rows are not read.
    return sql.trim().startsWith('SELECT') ? rows : [...rows];
  };
  return new EventLog({ exec } as unknown as SqlStorage);
}

const PIECE = 65_536;

test('reads a long stream in pieces, complete and in order, from any event on', () => {
  const log = emptyLog();
  log.begin('acme');
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
