import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { SequenceOutput } from '../../../../origin/engine/text/sequence-output.ts';
import type { EventOf } from '../../../../shared/generation.ts';
import { runs } from '../../../support/random.ts';
import { targets } from '../support/search-targets.ts';
import { BOS, bytesOfToken, TOKEN_BYTES } from '../support/vocabulary.ts';

const TOKEN = { logprob: null, visible: true, armed: true, skip: 0 };

const certain = (bytes: readonly number[]) =>
  new TextDecoder('utf-8', { ignoreBOM: true }).decode(Uint8Array.from(bytes), { stream: true });

const output = (stop: readonly string[], tokensPerEvent?: number) =>
  new SequenceOutput({
    tokenBytes: TOKEN_BYTES,
    stops: targets(stop),
    includeStop: false,
    tokenIds: true,
    logprobs: false,
    tokensPerEvent,
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
          const [event] = sequence.take(0, 0, true);
          released += event?.text.length ?? 0;
          sent = [...sent, ...(event?.ids ?? [])];
          expect(sent).toEqual(ids.slice(0, starts.filter((start) => start < released).length));
        }
        sequence.end();
        sent = [...sent, ...(sequence.take(0, 0, true)[0]?.ids ?? [])];
        expect(sent).toEqual(ids.slice(0, starts.length));
      }),
      { numRuns: runs(1000) },
    );
  });

  it('sends the text of all bytes in whole characters', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(BOS - 1), { maxLength: 30 }), (ids) => {
        const sequence = output([]);
        const texts = ids.map((id) => {
          sequence.push({ ...TOKEN, id: id });
          return sequence.take(0, 0, true)[0]?.text ?? '';
        });
        sequence.end();
        texts.push(sequence.take(0, 0, true)[0]?.text ?? '');
        const bytes = Uint8Array.from(ids.flatMap((id) => [...bytesOfToken(id)]));
        expect(texts.join('')).toBe(new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes));
        expect(texts.every((text) => text.isWellFormed())).toBe(true);
      }),
      { numRuns: runs(1000) },
    );
  });

  it('sends whole characters only, and one replacement character for a rest of bytes', () => {
    const sequence = output([]);
    const texts = [12, 13, 14, 15, 12, 13].map((id) => {
      sequence.push({ ...TOKEN, id: id });
      return sequence.take(0, 0, false)[0]?.text ?? null;
    });
    expect(texts).toEqual([null, null, null, '😀', null, null]);
    sequence.end();
    expect(sequence.take(0, 0, false)[0]?.text).toBe('\ufffd');
  });

  it('returns no event without text or tokens, unless an empty one is wanted', () => {
    const sequence = output([]);
    expect(sequence.take(0, 0, false)).toEqual([]);
    const empty = { type: 'token', choice: 3, text: '', completionTokens: 7, ids: [] };
    expect(sequence.take(3, 7, true)).toEqual([empty]);
  });

  it('sends each token with all of its text in an event of its own on request', () => {
    const tokens = fc.array(fc.tuple(fc.nat(BOS), fc.boolean()), { maxLength: 30 });
    fc.assert(
      fc.property(tokens, stops, fc.constantFrom(1, 3), (steps, strings, tokensPerEvent) => {
        const [merged, single] = [output(strings), output(strings, tokensPerEvent)];
        const events: EventOf<'token'>[] = [];
        let taken = 0;
        for (const [step, [id, takes]] of steps.entries()) {
          for (const sequence of [merged, single]) sequence.push({ ...TOKEN, id, visible: id !== BOS });
          taken = step + 1;
          if (single.stop !== null) break;
          if (takes) events.push(...single.take(0, taken, true));
        }
        for (const sequence of [merged, single]) sequence.end();
        events.push(...single.take(0, taken, false));
        const [whole] = merged.take(0, taken, true);
        expect(events.map(({ text }) => text).join('')).toBe(whole?.text);
        expect(events.flatMap(({ ids }) => ids ?? [])).toEqual(whole?.ids);
        const counts = events.map(({ completionTokens }) => completionTokens);
        expect(counts).toEqual(counts.toSorted((a, b) => a - b));
        expect(events.length === 0 ? 0 : counts.at(-1)).toBe(events.length === 0 ? 0 : taken);
        // The text of each event is that of its tokens. A stop cuts the last texts.
        let bytes: number[] = [];
        for (const { text, ids = [] } of events) {
          expect(ids.length).toBeLessThanOrEqual(tokensPerEvent);
          const before = certain(bytes);
          bytes = [...bytes, ...ids.flatMap((id) => (id === BOS ? [] : bytesOfToken(id)))];
          if (ids.length === 0 || single.stop !== null) continue;
          expect([
            certain(bytes).slice(before.length),
            `${certain(bytes).slice(before.length)}\ufffd`,
          ]).toContain(text);
        }
      }),
      { numRuns: runs(1000) },
    );
  });
});
