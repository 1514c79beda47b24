import type { ServerResponse } from 'node:http';
import { expect, test } from 'vitest';
import { EventStream, READER_LIMITS } from '../../../origin/http/event-stream.ts';
import type { GenerationEvent } from '../../../shared/generation.ts';

/** A response whose client has not read anything. */
class Unread {
  destroyed = false;
  writableLength = 0;
  written = '';
  writeHead(): void {}
  write(text: string): void {
    this.written += text;
    this.writableLength += text.length;
  }
  end(): void {}
  once(): void {}
  destroy(): void {
    this.destroyed = true;
  }
}

const token = (text: string): GenerationEvent => ({ type: 'token', choice: 0, text, completionTokens: 1 });

test('one long event does not disconnect a reader that has not read it before the next event', () => {
  const response = new Unread();
  const limits = { unreadBytes: 1000, drainMs: 1 };
  const stream = new EventStream(response as unknown as ServerResponse, limits);
  stream.open([], []);
  stream.write([token('x'.repeat(100_000))]);
  stream.write([token('y')]);
  expect(response.destroyed).toBe(false);
  for (let event = 0; event < 20; event++) stream.write([token('z'.repeat(100))]);
  expect(response.destroyed).toBe(true);
});

test('a heartbeat is an empty line, and is not sent before the last event has been read', () => {
  const response = new Unread();
  const stream = new EventStream(response as unknown as ServerResponse, READER_LIMITS);
  stream.beat();
  expect(response.written).toBe('');
  stream.open([token('a')], []);
  expect(stream.beat()).toBe(false);
  response.writableLength = 0;
  expect(stream.beat()).toBe(true);
  stream.write([{ type: 'error', code: 'upstream_error', message: 'x', param: null, retryable: false }]);
  response.writableLength = 0;
  stream.beat();
  expect(response.written.split('\n').map((line) => line.slice(0, 12))).toEqual([
    '{"type":"tok',
    '',
    '{"type":"err',
    '',
  ]);
});

test('a write without events before the head shows that the constraint is compiled, and is no event', async () => {
  const response = new Unread();
  const stream = new EventStream(response as unknown as ServerResponse, READER_LIMITS);
  stream.write([]);
  await stream.first;
  stream.open([], []);
  expect(response.written).toBe('');
});
