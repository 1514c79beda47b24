import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { GenerationEvent } from '../../../shared/generation.ts';
import { UsageTally } from '../../../shared/usage.ts';
import type { ResponseOptions } from '../../../worker/dialects/parsed-completion.ts';
import { StreamWriter } from '../../../worker/generation/format/stream-writer.ts';
import { parse } from '../dialects/parsing.ts';

const ENVELOPE = { id: 'cmpl-1', created: 1, model: 'default', fingerprint: 'fp' };
const TIMINGS = { queueMs: 1, promptMs: 2, generationMs: 3 };

interface Chunk {
  readonly choices: readonly { readonly index: number; readonly finish_reason: string | null }[];
  readonly usage?: { readonly completion_tokens: number } | null;
  readonly timings?: { readonly predicted_ms: number };
}

/** Some tokens of each choice, in any order, each choice's end behind its last. */
function eventsOf(order: readonly number[], choices: number): GenerationEvent[] {
  const ends = Array.from({ length: choices }, (_, choice) => order.lastIndexOf(choice));
  const counts = Array.from({ length: choices }, () => 0);
  const finish = (choice: number): GenerationEvent => ({
    type: 'finish',
    choice,
    reason: 'length',
    stopReason: null,
    completionTokens: counts[choice]!,
  });
  const silent = counts.flatMap((_, choice) => (ends[choice] === -1 ? [finish(choice)] : []));
  const said = order.flatMap((choice, at): GenerationEvent[] => {
    counts[choice]! += 1;
    const token = { type: 'token', choice, text: 'x', completionTokens: counts[choice]! } as const;
    return ends[choice] === at ? [token, finish(choice)] : [token];
  });
  return [...silent, ...said];
}

function written(options: Partial<ResponseOptions>, events: readonly GenerationEvent[], choices: number) {
  const parsed = parse({ stream: true, n: 2, prompt: Array.from({ length: choices / 2 }, () => 'x') });
  const tally = new UsageTally(() => 0);
  const parts = { options: { ...parsed.response, ...options }, envelope: ENVELOPE };
  const writer = new StreamWriter({ ...parts, prompts: choices / 2, choices: 2 }, () => tally.usage);
  const usage = { promptTokens: 3, cachedTokens: 0, completionTokens: 99 };
  const texts = [...events, { type: 'done', usage, timings: TIMINGS } as const].map((event) => {
    tally.add(event);
    return writer.write([event]);
  });
  const messages = texts.join('').split('\n\n').slice(0, -1);
  expect(messages.pop()).toBe('data: [DONE]');
  return messages.map((message) => JSON.parse(message.slice('data: '.length)) as Chunk);
}

test('usage and timings are in the requested chunks only, whichever choice ends last', () => {
  const modes = fc.constantFrom(
    'none' as const,
    'final' as const,
    'continuous' as const,
    'last-choice' as const,
  );
  const orders = fc
    .constantFrom(2, 4)
    .chain((choices) => fc.tuple(fc.constant(choices), fc.array(fc.nat(choices - 1), { maxLength: 12 })));
  fc.assert(
    fc.property(orders, modes, fc.boolean(), ([choices, order], streamUsage, timings) => {
      const events = eventsOf(order, choices);
      const chunks = written({ streamUsage, timings }, events, choices);
      const own = chunks.filter((chunk) => chunk.choices.length > 0);
      const shown = own.map(({ choices: [choice] }) => [choice?.index, choice?.finish_reason]);
      const expected = events.flatMap((event): [number, string | null][] => {
        if (event.type === 'token') return [[event.choice, null]];
        return event.type === 'finish' ? [[event.choice, 'length']] : [];
      });
      expect(shown).toEqual(expected);
      expect(chunks.slice(own.length)).toMatchObject(
        streamUsage === 'final' || streamUsage === 'continuous'
          ? [{ choices: [], usage: { completion_tokens: 99 } }]
          : [],
      );
      let count = 0;
      for (const [
        at,
        {
          choices: [choice],
          ...chunk
        },
      ] of own.entries()) {
        const last = at === own.length - 1;
        if (choice?.finish_reason === null) count += 1;
        expect('timings' in chunk).toBe(timings && last);
        if (streamUsage === 'none') expect(chunk).not.toHaveProperty('usage');
        else if (streamUsage === 'final') expect(chunk.usage).toBeNull();
        else if (streamUsage === 'last-choice')
          expect(chunk.usage?.completion_tokens).toBe(last ? 99 : undefined);
        else expect(chunk.usage?.completion_tokens).toBe(last && timings ? 99 : count);
      }
    }),
  );
});
