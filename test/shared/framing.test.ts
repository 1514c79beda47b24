import fc from 'fast-check';
import { expect, test } from 'vitest';
import { LineDecoder, SseDecoder } from '../../shared/framing.ts';

/** Fragments of any size, with many line ends. */
const fragments = fc.array(fc.string({ unit: fc.constantFrom('\n', '\r', 'a', 'data:', ' ', ': ') }));

test('decodes the same lines from any fragmentation of a text', () => {
  fc.assert(
    fc.property(fragments, (parts) => {
      const decoder = new LineDecoder();
      const lines = parts.flatMap((part) => decoder.push(part));
      const whole = parts.join('').split('\n');
      const rest = whole.pop() ?? '';
      expect(lines).toEqual(whole);
      expect([decoder.pending, decoder.end()]).toEqual([rest.length, rest]);
    }),
  );
});

test('counts every line of an unfinished event, including empty ones', () => {
  const decoder = new SseDecoder();
  decoder.push('data:\n'.repeat(1000));
  expect(decoder.pending).toBeGreaterThanOrEqual(1000);
  decoder.push('\n');
  expect(decoder.pending).toBe(0);
});

test('decodes the same events from any fragmentation of a text', () => {
  fc.assert(
    fc.property(fragments, (parts) => {
      const [whole, cut] = [new SseDecoder(), new SseDecoder()];
      expect(parts.flatMap((part) => cut.push(part))).toEqual(whole.push(parts.join('')));
      expect(cut.pending).toBe(whole.pending);
    }),
  );
});

test('reads only the data of an event, without one leading space', () => {
  const text = ': hello\n\ndata: a\r\ndata:b\ndata:  c\nid: 7\n\nevent: end\n\ndata:\n\n';
  expect(new SseDecoder().push(text)).toEqual(['a\nb\n c', '']);
});
