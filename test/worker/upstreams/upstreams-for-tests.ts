import { beforeEach } from 'vitest';
import { forAllTests } from '../../support/for-tests.ts';
import { ADMIN_KEY_SHA256, completion } from '../admin/admin-client.ts';
import { type FakeOrigin, SECRET, startFakeOrigin } from '../support/fake-origin.ts';
import { KEY, type RunningWorker, startWorker, type WorkerOptions } from '../support/worker.ts';
import { asNewForEach } from '../support/worker-for-tests.ts';
import { WorkerdLog } from '../support/workerd-log.ts';
import { answer, type FakeOpenAi, startFakeOpenAi } from './fake-openai.ts';

type Timeouts = Readonly<Record<string, number>>;

/** How long some upstreams are waited for; without them as long as a busy machine may ever make them take. */
interface Patience {
  readonly first?: Timeouts;
  readonly second?: Timeouts;
  readonly foreign?: Timeouts;
}

/**
 * Two origins and an OpenAI-compatible server. One origin is also configured under other names and behind a
 * binding, the server also as a strict one, as a local one, as one that gets pseudonyms and as clusters.
 */
const configured = (first: FakeOrigin, second: FakeOrigin, openAi: FakeOpenAi, patience: Patience) => [
  { kind: 'origin', name: 'first', url: first.url, timeouts: patience.first },
  { kind: 'origin', name: 'second', url: second.url, timeouts: patience.second },
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
    cacheSalt: true,
    models: [
      { id: 'foreign', contextLength: 2048, upstreamId: 'real-name' },
      { id: 'chat-only', contextLength: 2048, rawCompletions: false },
    ],
    timeouts: patience.foreign,
  },
  {
    kind: 'openai',
    name: 'strict',
    url: openAi.url,
    flavor: 'openai',
    user: 'omit',
    models: [
      { id: 'strict', contextLength: 2048 },
      { id: 'strict-coder', contextLength: 2048, infill: true },
    ],
  },
  {
    kind: 'openai',
    name: 'local',
    url: openAi.url,
    flavor: 'llamacpp',
    models: [
      { id: 'local', contextLength: 2048 },
      { id: 'local-coder', contextLength: 2048, infill: true },
    ],
  },
  {
    kind: 'openai',
    name: 'gateway',
    url: openAi.url,
    flavor: 'litellm',
    models: [{ id: 'gateway', contextLength: 2048 }],
  },
  {
    kind: 'openai',
    name: 'unscored',
    url: openAi.url,
    scoring: false,
    models: [{ id: 'unscored', contextLength: 2048 }],
  },
  {
    kind: 'openai',
    name: 'hashing',
    url: openAi.url,
    user: 'hashed',
    models: [{ id: 'hashing', contextLength: 2048 }],
  },
  {
    kind: 'openai',
    name: 'cluster',
    url: openAi.url,
    flavor: 'llm-d',
    flexPriority: 10,
    models: [{ id: 'cluster', contextLength: 2048 }],
  },
  {
    kind: 'openai',
    name: 'old-cluster',
    url: openAi.url,
    flavor: 'llm-d',
    routerHeaders: 'x-gateway-inference',
    models: [{ id: 'old-cluster', contextLength: 2048 }],
  },
];

/** A Worker before several upstreams for all tests of a file, reset for each. */
export function upstreamsForTests() {
  const origins = [forAllTests(startFakeOrigin), forAllTests(startFakeOrigin)] as const;
  const openAi = forAllTests(startFakeOpenAi);
  /** Another Worker before the same ones. */
  const another = (
    patience: Patience,
    options: WorkerOptions = {},
    more: Readonly<Record<string, string>> = {},
  ) =>
    forAllTests(() => {
      const vars = {
        UPSTREAMS: JSON.stringify(configured(...origins, openAi, patience)),
        FOREIGN_KEY: 'secret-of-the-foreign-server',
        ORIGIN_SECRET: SECRET,
        ADMIN_KEY_SHA256,
        ...more,
      };
      return startWorker(origins[0], vars, options);
    });
  const log = new WorkerdLog(/"upstream_failed"/);
  const worker = another({}, { log });
  for (const origin of origins) asNewForEach(origin);
  beforeEach(() => {
    openAi.script = answer;
    openAi.bodies.length = 0;
    openAi.texts.length = 0;
    openAi.headers.length = 0;
  });
  return { origins, openAi, worker, log, another };
}

/** A prompt that goes to this origin as long as both are well, from every Worker before them. */
export async function promptFor(origin: FakeOrigin, worker: RunningWorker): Promise<string> {
  for (let count = 0; ; count += 1) {
    const before = origin.requests.length;
    await completion(worker, KEY, { prompt: `for ${count}` });
    if (origin.requests.length > before) return `for ${count}`;
  }
}
