import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { ndjsonLine } from '../../../shared/framing.ts';
import type { GenerationEvent } from '../../../shared/generation.ts';
import { complete, stream } from '../support/completions.ts';
import { openStream } from '../support/raw-request.ts';
import { acceptedFor, doneFor, finishOf, stepsFor, token, tokenEvent } from '../support/scripts.ts';
import { assemble, blocksOf, chunksOf } from '../support/sse.ts';
import { workerForTests } from '../support/worker-for-tests.ts';

const KEEP_ALIVE_MS = 150;

const { worker, origin } = workerForTests({ KEEP_ALIVE_MS: String(KEEP_ALIVE_MS) });

describe('a stream adds up to the plain answer', () => {
  const cases = [1, 3].flatMap((n) =>
    ['Hi', ['a', 'bc', 'def']].flatMap((prompt) =>
      [{}, { logprobs: 2 }, { echo: true, logprobs: 0 }].map((more) => ({
        n,
        prompt,
        max_tokens: 4,
        ...more,
      })),
    ),
  );
  test.each(cases.map((body) => [JSON.stringify(body), body] as const))('%s', async (_, body) => {
    const plain = await complete(worker, body);
    expect(assemble(await stream(worker, body))).toEqual(plain.choices);
  });
});

describe('the stream', () => {
  test('chunks share id, created, model and fingerprint; usage is absent unless asked for', async () => {
    const chunks = await stream(worker, { n: 2, max_tokens: 3 });
    for (const field of ['id', 'created', 'model', 'system_fingerprint'] as const) {
      expect(new Set(chunks.map((chunk) => chunk[field])).size).toBe(1);
    }
    expect(chunks.every((chunk) => chunk.choices.length === 1 && !('usage' in chunk))).toBe(true);
  });

  test('include_usage: null in every chunk, then one chunk without choices', async () => {
    const chunks = await stream(worker, { max_tokens: 2, n: 2, stream_options: { include_usage: true } });
    expect(chunks.slice(0, -1).every(({ usage }) => usage === null)).toBe(true);
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { prompt_tokens: 2, completion_tokens: 4 } });
  });

  test('continuous_usage_stats: the count so far in every chunk', async () => {
    const stream_options = { include_usage: true, continuous_usage_stats: true };
    const chunks = await stream(worker, { max_tokens: 3, stream_options });
    expect(chunks.map(({ usage }) => usage?.completion_tokens)).toEqual([1, 2, 3, 3, 3]);
  });

  test('tokens without text have events of their own with logprobs, unless stream_interval is larger', async () => {
    origin.script = (request, wire) => {
      const texts = ['', '', '€', ' b', ''];
      const sent = texts.map((text, step): GenerationEvent => {
        const logprobs = [token(step, text || 'x', -1, 1)];
        return { type: 'token', choice: 0, text, completionTokens: step + 1, logprobs };
      });
      wire.send(...acceptedFor(request), ...sent, finishOf(0, 'stop', 5), doneFor(request, 5));
      wire.end();
    };
    const shownBy = async (fields: object) => {
      const chunks = await stream(worker, { logprobs: 1, ...fields });
      return chunks.map(({ choices: [choice] }) => [choice?.text, choice?.logprobs?.tokens.length ?? 0]);
    };
    const single = [
      ['', 1],
      ['', 1],
      ['€', 1],
      [' b', 1],
      ['', 1],
      ['', 0],
    ];
    expect(await shownBy({})).toEqual(single);
    expect(await shownBy({ stream_interval: 2 })).toEqual([
      ['', 2],
      ['€', 1],
      [' b', 1],
      ['', 1],
    ]);
    expect(origin.requests.map(({ tokensPerEvent }) => tokensPerEvent)).toEqual([1, 2]);
    await complete(worker, { logprobs: 1 });
    await stream(worker, { stream_interval: null });
    expect(origin.requests.slice(2).map(({ tokensPerEvent }) => tokensPerEvent)).toEqual([
      undefined,
      undefined,
    ]);
  });

  test('tokens with held-back text are sent with their text, or at the end', async () => {
    origin.script = (request, wire) => {
      const steps = stepsFor({ ...request, maxTokens: 0 });
      const held = (text: string, id: number, shown: string): GenerationEvent => ({
        type: 'token',
        choice: 0,
        text: shown,
        completionTokens: id,
        logprobs: [token(id, text, -1, 0)],
      });
      wire.send(
        ...(steps[0] ?? []),
        held('a', 1, ''),
        held('b', 2, 'ab'),
        held('c', 3, ''),
        ...steps.slice(1).flat(),
      );
      wire.end();
    };
    const chunks = await stream(worker, { logprobs: 0, stream_interval: 3 });
    expect(chunks.map(({ choices }) => [choices[0]?.text, choices[0]?.logprobs?.tokens ?? null])).toEqual([
      ['ab', ['a', 'b']],
      ['', ['c']],
    ]);
  });
});

describe('framing', () => {
  test('events may be split anywhere between origin and Worker', async () => {
    origin.script = async (request, wire) => {
      const text = '🙂 – ünï';
      const [start = [], ...rest] = stepsFor({ ...request, maxTokens: 0 });
      const events = [...start, tokenEvent(1, text), ...rest.flat()];
      const bytes = Buffer.from(events.map(ndjsonLine).join(''), 'utf8');
      const from = bytes.indexOf('🙂') - 2;
      await wire.raw(bytes.subarray(0, from));
      for (let index = from; index < from + 20; index += 1) {
        await sleep(1);
        await wire.raw(bytes.subarray(index, index + 1));
      }
      await wire.raw(bytes.subarray(from + 20));
      wire.end();
    };
    const body = { model: 'default', prompt: 'Hi', max_tokens: 4, stream: true };
    const chunks = chunksOf(await (await worker.post(body)).text());
    expect(chunks[0]?.choices[0]?.text).toBe('🙂 – ünï');
  });

  test('events that arrive together are one write, with `<` as it is', async () => {
    origin.script = (request, wire) => {
      const [start = [], ...rest] = stepsFor({ ...request, maxTokens: 0 });
      wire.send(...start, tokenEvent(1, '<b>'), tokenEvent(2, ' & '), ...rest.flat());
      wire.end();
    };
    const { response } = await openStream(worker);
    const parts: string[] = [];
    for await (const part of response) parts.push(String(part));
    expect(parts[0]).toContain('"text":"<b>"');
    expect(parts[0]).toContain('"text":" & "');
  });

  /** Reads a stream to its end. `onBlocks` gets the number of blocks after each part. */
  async function readBlocks(onBlocks: (count: number) => void): Promise<string[]> {
    const { response } = await openStream(worker);
    let seen = '';
    for await (const part of response) {
      seen += String(part);
      onBlocks(blocksOf(seen).length);
    }
    return blocksOf(seen);
  }

  test.each([
    ['stopped', false],
    ['waiting', true],
  ])(
    'a %s origin: the Worker writes keep-alive comments in silence, and none between events',
    async (_, beats) => {
      const heard = Promise.withResolvers<void>();
      origin.script = async (request, wire) => {
        wire.send(...acceptedFor(request));
        const heartbeat = setInterval(() => beats && void wire.raw('\n'), KEEP_ALIVE_MS / 5);
        await heard.promise;
        clearInterval(heartbeat);
        wire.send(...stepsFor(request).slice(1).flat());
        wire.end();
      };
      // The origin sends its events after two comments, so the comments did not wait for events.
      const blocks = await readBlocks((count) => count >= 2 && heard.resolve());
      const comments = blocks.filter((block) => block.startsWith(':'));
      expect(comments.length).toBeGreaterThanOrEqual(2);
      expect(new Set(comments)).toEqual(new Set([': keep-alive']));
      expect(blocks.slice(0, comments.length)).toEqual(comments);
    },
  );
});
