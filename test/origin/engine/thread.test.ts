import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  EngineClient,
  type SubmissionAnswer,
  spawnEngineThread,
} from '../../../origin/engine/engine-client.ts';
import type { Submission } from '../../../origin/engine/messages.ts';
import { tokenBytesOf } from '../../../origin/tokenizer/read-token-bytes.ts';
import type { GenerationEvent } from '../../../shared/generation.ts';
import { submission } from './support/submissions.ts';
import { type SyntheticEngine, syntheticEngine } from './support/synthetic-engine.ts';
import { transcribe } from './support/transcript.ts';

let model: SyntheticEngine;
beforeAll(() => {
  model = syntheticEngine();
});
afterAll(() => model.remove());

const request = (requestId: string, maxTokens: number, fields: Partial<Submission> = {}) =>
  submission({
    requestId,
    prompts: [{ tokens: Int32Array.from([72, 101, 108, 108, 111]), maxTokens }],
    ignoreEos: true,
    ...fields,
  });

/** Too long to finish while this thread is delayed. */
const endless = (requestId: string) => request(requestId, 450, { choices: 100 });

interface Stream {
  readonly admission: Promise<SubmissionAnswer>;
  readonly events: GenerationEvent[];
  readonly ended: Promise<void>;
  /** Resolves with the first token. */
  readonly begun: Promise<void>;
}

function open(client: EngineClient, submitted: Submission): Stream {
  const events: GenerationEvent[] = [];
  const ended = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<void>();
  const admission = client.submit(submitted, (more) => {
    events.push(...more);
    if (more.some(({ type }) => type === 'token')) begun.resolve();
    if (more.some(({ type }) => type === 'done' || type === 'error')) ended.resolve();
  });
  return { admission, events, ended: ended.promise, begun: begun.promise };
}

/** Returns a client whose engine thread can be killed. */
function killable(onDeath: () => void = () => undefined) {
  let thread: Worker | null = null;
  const client = new EngineClient({
    spawn: () => {
      const worker = spawnEngineThread(model.data);
      if (worker instanceof Worker) thread = worker;
      return worker;
    },
    restartDelayMs: 1,
    onDeath,
  });
  return { client, kill: () => thread?.terminate() };
}

async function untilHealthy(client: EngineClient): Promise<void> {
  while (!client.status.healthy) await new Promise((resolve) => setTimeout(resolve, 5));
}

describe('the engine thread', () => {
  it('reports its model and serves requests until it is stopped', async () => {
    const client = new EngineClient({ spawn: () => spawnEngineThread(model.data) });
    expect(client.status.healthy).toBe(false);
    expect(await client.start()).toMatchObject({ slots: 4, contextLength: 512, vocabularySize: 320 });
    expect(client.status).toEqual({ running: 0, waiting: 0, healthy: true });
    const streams = Array.from({ length: 9 }, (_, serial) => open(client, request(`${serial}`, 20)));
    await Promise.all(streams.map(({ ended }) => ended));
    for (const { events } of streams) {
      expect(transcribe(events, 1).end).toEqual({ promptTokens: 5, completionTokens: 20 });
    }
    await client.stop();
    expect(client.status.healthy).toBe(false);
  });

  it('delivers no event before the admission', async () => {
    const { client } = killable();
    await client.start();
    let admitted = false;
    const first = Promise.withResolvers<boolean>();
    await client.submit(request('r', 3), () => first.resolve(admitted));
    admitted = true;
    expect(await first.promise).toBe(true);
    await client.stop();
  });

  it('fails to start with one line that names the missing directory', async () => {
    const data = { ...model.data, model: { ...model.data.model, directory: '/nowhere' } };
    const client = new EngineClient({ spawn: () => spawnEngineThread(data) });
    await expect(client.start()).rejects.toThrow(/^[^\n]*nowhere[^\n]*$/);
  });

  it('sends no more events of a stream after its abort', async () => {
    const { client } = killable();
    await client.start();
    const long = open(client, endless('r'));
    await long.begun;
    expect(() => client.submit(request('r', 1), () => undefined)).toThrow('once');
    client.abort('r');
    const sent = long.events.length;
    const next = open(client, request('next', 5));
    await next.ended;
    expect(long.events).toHaveLength(sent);
    expect(transcribe(next.events, 1).end).toEqual({ promptTokens: 5, completionTokens: 5 });
    await client.stop();
  });

  it('is restarted if it dies: open requests get an error, and the new thread serves the next ones', async () => {
    let deaths = 0;
    const { client, kill } = killable(() => deaths++);
    await client.start();
    const streams = Array.from({ length: 6 }, (_, serial) => open(client, endless(`${serial}`)));
    await streams[0]?.begun;
    await kill();
    await Promise.all(streams.map(({ ended }) => ended));
    for (const { events } of streams) {
      expect(events.at(-1)).toMatchObject({ type: 'error', code: 'upstream_error', retryable: true });
    }
    expect(client.status.healthy).toBe(false);
    expect(await client.submit(request('early', 1), () => undefined)).toMatchObject({ admitted: false });
    await untilHealthy(client);
    const next = open(client, request('next', 10));
    await next.ended;
    expect(transcribe(next.events, 1).end).toEqual({ promptTokens: 5, completionTokens: 10 });
    expect(deaths).toBe(1);
    await client.stop();
  });

  it('ends open requests with an error if it is stopped', async () => {
    const { client } = killable();
    await client.start();
    const stream = open(client, endless('r'));
    await stream.begun;
    await client.stop();
    expect(stream.events.at(-1)).toMatchObject({ type: 'error', retryable: true });
  });

  it('applies a grammar if the tokenizer has more tokens than the model', async () => {
    const file = join(model.data.model.directory, 'tokenizer.json');
    const tokenizer = JSON.parse(readFileSync(file, 'utf8'));
    const padding = { ...tokenizer.added_tokens[0], id: 2 * model.vocabularySize, content: '<pad>' };
    const tokenBytes = tokenBytesOf(
      { ...tokenizer, added_tokens: [...tokenizer.added_tokens, padding] },
      model.vocabularySize,
    );
    const client = new EngineClient({ spawn: () => spawnEngineThread({ ...model.data, tokenBytes }) });
    await client.start();
    const constraint = JSON.stringify({ type: 'regex', value: '[ab]{3}' });
    const { events, ended } = open(client, request('r', 9, { constraint, ignoreEos: false }));
    await ended;
    expect(transcribe(events, 1).choices.get(0)?.text).toMatch(/^[ab]{3}$/);
    await client.stop();
  });
});
