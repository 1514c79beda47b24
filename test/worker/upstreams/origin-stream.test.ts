import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ndjsonLine } from '../../../shared/framing.ts';
import type { GenerationEvent } from '../../../shared/generation.ts';
import { OriginStream, type Validation } from '../../../worker/upstreams/origin-stream.ts';
import { ACCEPTED, DONE, TOKEN } from '../generation/short-generation.ts';

const streamOf = (parts: readonly Uint8Array[], validation: Validation): OriginStream => {
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const part of parts) controller.enqueue(part);
      controller.close();
    },
  });
  return new OriginStream(body, validation, () => {});
};

const linesOf = (...events: readonly unknown[]) => [Buffer.from(events.map(ndjsonLine).join(''))];

async function batchesOf(stream: OriginStream): Promise<(readonly GenerationEvent[])[]> {
  const batches: (readonly GenerationEvent[])[] = [];
  for await (const batch of stream) batches.push(batch);
  return batches;
}

/** Valid JSON with a known type, but invalid by the schema. */
const ODD_LOGPROBS = { ...TOKEN, logprobs: [{ id: 'one' }] };

describe('events of the origin', () => {
  test('are the same, however their bytes are split, and a heartbeat is an empty batch', async () => {
    const text = [ACCEPTED, { ...TOKEN, text: '🙂 – ünï' }, DONE].map(ndjsonLine).join('\n');
    const bytes = Buffer.from(text, 'utf8');
    const cuts = fc.array(fc.nat(bytes.length), { maxLength: 12 });
    await fc.assert(
      fc.asyncProperty(cuts, async (positions) => {
        const ends = [...positions.toSorted((a, b) => a - b), bytes.length];
        const parts = ends.map((end, index) => bytes.subarray(ends[index - 1] ?? 0, end));
        const batches = await batchesOf(streamOf(parts, 'every'));
        expect(batches.flat()).toEqual([ACCEPTED, { ...TOKEN, text: '🙂 – ünï' }, DONE]);
      }),
    );
    expect(await batchesOf(streamOf([Buffer.from('\n')], 'every'))).toEqual([[]]);
  });

  test.each<[string, unknown]>([
    ['no type', {}],
    ['a negative choice', { ...TOKEN, choice: -1 }],
    ['a text that is not a string', { ...TOKEN, text: 7 }],
    ['a fraction of a token', { ...TOKEN, completionTokens: 0.5 }],
    ['logprobs that are not a list', { ...TOKEN, logprobs: {} }],
    ['an unknown finish reason', { type: 'finish', choice: 0, reason: 'bored', completionTokens: 1 }],
    ['no usage at the end', { ...DONE, usage: undefined }],
    ['null', null],
  ])('with %s are malformed in every mode', async (_, event) => {
    for (const validation of ['first', 'every'] as const) {
      const stream = streamOf(linesOf(ACCEPTED, event), validation);
      await expect(batchesOf(stream)).rejects.toMatchObject({ code: 'upstream_error' });
    }
  });

  test('of an unknown type, and unknown fields, are ignored', async () => {
    const lines = linesOf(
      { type: 'confetti' },
      ACCEPTED,
      { type: 'progress', done: 0.5 },
      { ...TOKEN, mood: 1 },
      DONE,
    );
    for (const validation of ['first', 'every'] as const) {
      expect((await batchesOf(streamOf(lines, validation))).flat()).toMatchObject([ACCEPTED, TOKEN, DONE]);
    }
  });

  test('are validated against the schema: all of them in development, only the first in production', async () => {
    const later = linesOf(ACCEPTED, ODD_LOGPROBS);
    await expect(batchesOf(streamOf(later, 'every'))).rejects.toMatchObject({ code: 'upstream_error' });
    expect((await batchesOf(streamOf(later, 'first'))).flat()).toHaveLength(2);
    const first = linesOf({ ...ACCEPTED, promptTokens: ['three'] });
    await expect(batchesOf(streamOf(first, 'first'))).rejects.toMatchObject({ code: 'upstream_error' });
  });
});
