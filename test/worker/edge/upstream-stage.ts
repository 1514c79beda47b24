import { type FakeOrigin, SECRET, startFakeOrigin } from '../support/fake-origin.ts';
import { type RunningWorker, startWorker } from '../support/worker.ts';
import { answer, type FakeOpenAi, startFakeOpenAi } from './fake-openai.ts';

/** A Worker before two origins, one of them under a second name, and an OpenAI-compatible server. */
export interface UpstreamStage {
  readonly origins: readonly [FakeOrigin, FakeOrigin];
  readonly openAi: FakeOpenAi;
  readonly worker: RunningWorker;
  /** All upstreams behave as usual and have heard nothing. */
  reset(): void;
  stop(): Promise<void>;
}

export async function startUpstreams(): Promise<UpstreamStage> {
  const origins = [await startFakeOrigin(), await startFakeOrigin()] as const;
  const openAi = await startFakeOpenAi();
  const model = { contextLength: 2048 };
  const upstreams = [
    { kind: 'origin', name: 'first', url: origins[0].url, timeouts: { connectMs: 500 } },
    { kind: 'origin', name: 'second', url: origins[1].url, timeouts: { connectMs: 500, idleMs: 400 } },
    {
      kind: 'origin',
      name: 'named',
      url: origins[0].url,
      models: [{ id: 'writer', upstreamId: 'org/tiny' }, { id: 'coder', upstreamId: 'fim' }, { id: 'gone' }],
    },
    {
      kind: 'openai',
      name: 'foreign',
      url: openAi.url,
      apiKey: 'FOREIGN_KEY',
      models: [
        { ...model, id: 'foreign', upstreamId: 'real-name' },
        { ...model, id: 'chat-only', rawCompletions: false },
      ],
      timeouts: { firstEventMs: 400 },
    },
  ];
  const worker = await startWorker(origins[0], {
    UPSTREAMS: JSON.stringify(upstreams),
    FOREIGN_KEY: 'secret-of-the-foreign-server',
    ORIGIN_SECRET: SECRET,
  });
  return {
    origins,
    openAi,
    worker,
    reset() {
      for (const origin of origins) origin.reset();
      openAi.script = answer;
      openAi.bodies.length = 0;
      openAi.headers.length = 0;
    },
    async stop() {
      await worker.stop();
      for (const origin of origins) await origin.stop();
      await openAi.stop();
    },
  };
}
