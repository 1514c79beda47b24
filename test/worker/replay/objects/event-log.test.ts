import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { behind, EventLog } from '../../../../worker/replay/objects/event-log.ts';

/** Node's SQLite in the place of an object's. */
function emptyLog(): EventLog {
  const database = new DatabaseSync(':memory:');
  const exec = (sql: string, ...values: (string | number | ArrayBuffer)[]) => {
    if (values.length === 0 && sql.includes('CREATE')) return database.exec(sql);
    const bound = values.map((value) => (value instanceof ArrayBuffer ? new Uint8Array(value) : value));
    const rows = database.prepare(sql).iterate(...bound);
    // An object's statements run at once, whether or not their rows are read.
    return sql.trim().startsWith('SELECT') ? rows : [...rows];
  };
  return new EventLog({ exec } as unknown as SqlStorage);
}

const PIECE = 65_536;

test('a long stream is read piece by piece, in order and whole, from any event on', () => {
  const log = emptyLog();
  log.begin('acme');
  const blocks = Array.from({ length: 5000 }, (_, index) => `data: ${index} `.padEnd(index % 200, 'x'));
  blocks.push('data: '.padEnd(50 * PIECE, 'né🙂'), 'data: [DONE]');
  log.keep(blocks.slice(0, 3000));
  log.keep(blocks.slice(3000));
  for (const from of [0, 1, 4999, 5000, 5001, 5002]) {
    const read: Uint8Array[] = [];
    for (let place = behind(from); ; ) {
      const reading = log.after(place);
      if (reading === null) break;
      expect(reading.bytes.length).toBeLessThan(2 * PIECE);
      read.push(reading.bytes);
      place = reading.place;
    }
    const sent = blocks.map((block, index) => `id: ${index + 1}\n${block}\n\n`);
    expect(Buffer.concat(read).toString() === sent.slice(from).join('')).toBe(true);
  }
});
