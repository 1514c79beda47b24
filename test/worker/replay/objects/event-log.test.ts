import { expect, test } from 'vitest';
import { EventLog, endOf } from '../../../../worker/replay/objects/event-log.ts';
import { sqlStorage } from '../../support/sql-storage.ts';

const emptyLog = (): EventLog => new EventLog(sqlStorage());

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
