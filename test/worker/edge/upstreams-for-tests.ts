import { beforeEach } from 'vitest';
import { forAllTests } from '../../support/for-tests.ts';
import { type FakeOrigin, SECRET, startFakeOrigin } from '../support/fake-origin.ts';
import { startWorker } from '../support/worker.ts';
import { asNewForEach } from '../support/worker-for-tests.ts';
import { answer, type FakeOpenAi, startFakeOpenAi } from './fake-openai.ts';

/** Two origins, one of them once more under other names and once more behind a binding, and an OpenAI-compatible server. */
const configured = (first: FakeOrigin, second: FakeOrigin, openAi: FakeOpenAi) => [
  { kind: 'origin', name: 'first', url: first.url, timeouts: { connectMs: 500 } },
  { kind: 'origin', name: 'second', url: second.url, timeouts: { connectMs: 500, idleMs: 400 } },
  {
    kind: 'origin',
    name: 'named',
    url: first.url,
    models: [{ id: 'writer', upstreamId: 'org/tiny' }, { id: 'coder', upstreamId: 'fim' }, { id: 'gone' }],
  },
  {
    kind: 'origin',
    name: 'bound',
    url: 'http://no-such-host.invalid',
    binding: 'ORIGIN',
    models: [{ id: 'bound', upstreamId: 'org/tiny' }],
  },
  {
    kind: 'openai',
    name: 'foreign',
    url: openAi.url,
    apiKey: 'FOREIGN_KEY',
    models: [
      { id: 'foreign', contextLength: 2048, upstreamId: 'real-name' },
      { id: 'chat-only', contextLength: 2048, rawCompletions: false },
    ],
    timeouts: { firstEventMs: 400 },
  },
];

/** A Worker before several upstreams for all tests of a file; for each they behave as usual and have heard nothing. */
export function upstreamsForTests() {
  const origins = [forAllTests(startFakeOrigin), forAllTests(startFakeOrigin)] as const;
  const openAi = forAllTests(startFakeOpenAi);
  const worker = forAllTests(() =>
    startWorker(origins[0], {
      UPSTREAMS: JSON.stringify(configured(...origins, openAi)),
      FOREIGN_KEY: 'secret-of-the-foreign-server',
      ORIGIN_SECRET: SECRET,
    }),
  );
  for (const origin of origins) asNewForEach(origin);
  beforeEach(() => {
    openAi.script = answer;
    openAi.bodies.length = 0;
    openAi.headers.length = 0;
  });
  return { origins, openAi, worker };
}
