import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { SequenceOutput } from '../../../../origin/engine/text/sequence-output.ts';
import { targets } from '../support/search-targets.ts';
import { BOS, bytesOfToken, TOKEN_BYTES } from '../support/vocabulary.ts';

const TOKEN = { logprob: null, visible: true, armed: true, skip: 0, undo: () => undefined };

const certain = (bytes: readonly number[]) =>
  new TextDecoder('utf-8', { ignoreBOM: true }).decode(Uint8Array.from(bytes), { stream: true });

const output = (stop: readonly string[]) =>
  new SequenceOutput({
    tokenBytes: TOKEN_BYTES,
    stops: targets(stop),
    banned: targets([]),
    includeStop: false,
    tokenIds: true,
    logprobs: false,
  });

const stops = fc.array(fc.constantFrom('abca', 'b c', '😀😀', 'cab ab'), { maxLength: 2 });

describe('the output of a sequence', () => {
  it('sends each token once, with the first of its characters that is sent', () => {
    const tokens = fc.array(fc.nat(BOS), { maxLength: 30 });
    fc.assert(
      fc.property(tokens, stops, (ids, strings) => {
        const sequence = output(strings);
        const bytes: number[] = [];
        const starts: number[] = [];
        let released = 0;
        let sent: number[] = [];
        for (const id of ids) {
          starts.push(certain(bytes).length);
          if (id !== BOS) bytes.push(...bytesOfToken(id));
          sequence.push({ ...TOKEN, id: id, visible: id !== BOS });
          if (sequence.stop !== null) break;
          const event = sequence.take(0, 0, true);
          released += event?.text.length ?? 0;
          sent = [...sent, ...(event?.ids ?? [])];
          expect(sent).toEqual(ids.slice(0, starts.filter((start) => start < released).length));
        }
        sequence.end();
        sent = [...sent, ...(sequence.take(0, 0, true)?.ids ?? [])];
        expect(sent).toEqual(ids.slice(0, starts.length));
      }),
      { numRuns: 1000 },
    );
  });

  it('sends the text of all bytes in whole characters', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(BOS - 1), { maxLength: 30 }), (ids) => {
        const sequence = output([]);
        const texts = ids.map((id) => {
          sequence.push({ ...TOKEN, id: id });
          return sequence.take(0, 0, true)?.text ?? '';
        });
        sequence.end();
        texts.push(sequence.take(0, 0, true)?.text ?? '');
        const bytes = Uint8Array.from(ids.flatMap((id) => [...bytesOfToken(id)]));
        expect(texts.join('')).toBe(new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes));
        expect(texts.every((text) => text.isWellFormed())).toBe(true);
      }),
      { numRuns: 1000 },
    );
  });

  it('sends whole characters only, and one replacement character for a rest of bytes', () => {
    const sequence = output([]);
    const texts = [12, 13, 14, 15, 12, 13].map((id) => {
      sequence.push({ ...TOKEN, id: id });
      return sequence.take(0, 0, false)?.text ?? null;
    });
    expect(texts).toEqual([null, null, null, '😀', null, null]);
    sequence.end();
    expect(sequence.take(0, 0, false)?.text).toBe('\ufffd');
  });

  it('returns no event without text or tokens, unless an empty one is wanted', () => {
    const sequence = output([]);
    expect(sequence.take(0, 0, false)).toBeNull();
    expect(sequence.take(3, 7, true)).toEqual({
      type: 'token',
      choice: 3,
      text: '',
      completionTokens: 7,
      ids: [],
    });
  });
});
