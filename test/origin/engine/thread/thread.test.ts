import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import type { EngineEvent, Submission } from '../../../../origin/engine/messages.ts';
import {
  EngineClient,
  type SubmissionReply,
  spawnEngineThread,
} from '../../../../origin/engine/thread/engine-client.ts';
import { Watchdog } from '../../../../origin/engine/thread/watchdog.ts';
import { tokenBytesOf } from '../../../../origin/tokenizer/read-token-bytes.ts';
import type { GenerationEvent } from '../../../../shared/generation.ts';
import { submission } from '../support/submissions.ts';
import { type SyntheticEngine, syntheticEngine } from '../support/synthetic-engine.ts';
import { transcribe, wireEvents } from '../support/transcript.ts';

let model: SyntheticEngine;
beforeAll(() => {
  model = syntheticEngine();
});

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
  readonly admission: Promise<SubmissionReply>;
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
    events.push(...wireEvents(more, submitted, model.data.tokenBytes));
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

it('reports a compiled constraint while its request still waits for a slot', async () => {
  const client = new EngineClient({ spawn: () => spawnEngineThread(model.data) });
  await client.start();
  const busy = open(client, endless('busy'));
  await busy.begun;
  const compiled = Promise.withResolvers<readonly EngineEvent[]>();
  const constraint = JSON.stringify({ type: 'regex', value: '[ab]{3}' });
  await client.submit(request('waiting', 3, { constraint }), compiled.resolve);
  expect(await compiled.promise).toEqual([]);
  await client.stop();
});

/** Admits every submission except `silent`, then spins forever. */
const spinning = (onGpu: boolean) => `
  const { parentPort } = require('node:worker_threads');
  parentPort.postMessage({ type: 'ready', onGpu: ${onGpu} });
  parentPort.on('message', ({ submission }) => {
    if (submission === undefined) return;
    const { requestId } = submission;
    if (requestId === 'silent') for (;;);
    parentPort.postMessage({ type: 'admitted', requestId });
  });
`;

it('a hung engine thread becomes unhealthy, fails its requests and is replaced', async () => {
  const deaths: string[] = [];
  let spawned = 0;
  // Time passes only while the thread spins: on a busy machine, any other may be silent for as long.
  let spins = false;
  let passed = 0;
  const client = new EngineClient({
    spawn: () =>
      spawned++ === 0 ? new Worker(spinning(false), { eval: true }) : spawnEngineThread(model.data),
    stall: { afterMs: 500, now: () => (passed += spins ? 50 : 0) },
    restartDelayMs: 1,
    onDeath: (reason) => {
      deaths.push(reason);
      spins = false;
    },
  });
  await client.start();
  const events: EngineEvent[] = [];
  expect(await client.submit(request('open', 3), (more) => events.push(...more))).toEqual({ admitted: true });
  spins = true;
  const unanswered = client.submit(request('silent', 3), () => undefined);
  expect(await unanswered).toMatchObject({ admitted: false });
  expect(client.status.healthy).toBe(false);
  expect(events).toMatchObject([{ type: 'error', code: 'upstream_error', retryable: true }]);
  await untilHealthy(client);
  expect(deaths).toEqual(['the engine thread did not answer for 0.5 s']);
  const done = Promise.withResolvers<void>();
  await client.submit(request('next', 3), (more) => {
    if (more.some(({ type }) => type === 'done')) done.resolve();
  });
  await done.promise;
  await client.stop();
});

it('a hung engine thread on a GPU is not replaced: its memory there is not free until the process ends', async () => {
  const lost = Promise.withResolvers<string>();
  let spawned = 0;
  const client = new EngineClient({
    spawn: () => {
      spawned += 1;
      return new Worker(spinning(true), { eval: true });
    },
    stall: { afterMs: 100, now: () => performance.now() },
    restartDelayMs: 1,
    onDeviceLost: lost.resolve,
  });
  await client.start();
  void client.submit(request('silent', 3), () => undefined);
  expect(await lost.promise).toBe('the engine thread did not answer for 0.1 s');
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect([spawned, client.status.healthy]).toEqual([1, false]);
  await client.stop();
});

it('a thread that hangs while it is stopped is ended', async () => {
  const client = new EngineClient({
    spawn: () => new Worker(spinning(false), { eval: true }),
    stall: { afterMs: 100, now: () => performance.now() },
  });
  await client.start();
  void client.submit(request('silent', 3), () => undefined);
  await client.stop();
  expect(client.status.healthy).toBe(false);
});

let now = 0;
beforeEach(() => {
  now = 0;
});

/** Advances the injected clock together with the timers. */
function advance(ms: number, periodMs = 100): void {
  for (let passed = 0; passed < ms; passed += periodMs) {
    now += periodMs;
    vi.advanceTimersByTime(periodMs);
  }
}

function watched(answers: boolean, hasWork = () => true) {
  vi.useFakeTimers();
  const onStall = vi.fn();
  const watchdog: Watchdog = new Watchdog({
    stallMs: 1000,
    now: () => now,
    hasWork,
    ping: () => answers && watchdog.alive(),
    onStall,
  });
  watchdog.start();
  return { watchdog, onStall };
}

it('a thread that answers, or has no work, is never given up', () => {
  const answering = watched(true);
  const idle = watched(false, () => false);
  advance(60_000);
  expect(answering.onStall).not.toHaveBeenCalled();
  expect(idle.onStall).not.toHaveBeenCalled();
});

it('a thread that does not answer is given up once, after the limit', () => {
  const { onStall } = watched(false);
  advance(1000);
  expect(onStall).not.toHaveBeenCalled();
  advance(10_000);
  expect(onStall).toHaveBeenCalledTimes(1);
});

it('the silence counts on if the last request is aborted', () => {
  let work = true;
  const { onStall } = watched(false, () => work);
  advance(500);
  work = false;
  advance(2000);
  expect(onStall).toHaveBeenCalledTimes(1);
});

it('time in which the watching thread was blocked does not count', () => {
  const { watchdog, onStall } = watched(false);
  advance(200);
  now += 60_000;
  advance(100);
  expect(onStall).not.toHaveBeenCalled();
  watchdog.alive();
  advance(500);
  expect(onStall).not.toHaveBeenCalled();
});
