import { setTimeout as sleep } from 'node:timers/promises';
import Table from 'cli-table3';
import { startSystem } from '../../support/system.ts';
import { mean } from '../bench/statistics.ts';
import { residentMiB, workerdOf } from './resident.ts';
import { type Measurement, newTenant, post, type Scenario } from './scenario.ts';

/** Minutes of load; then IDLE_MINUTES without. */
const MINUTES = Number(process.env.SOAK_MINUTES ?? 30);
const IDLE_MINUTES = 2;
/** The memory may grow in the first minutes: caches fill, and code is compiled. */
const WARM_UP_MINUTES = 5;
const ALLOWED_GROWTH = 1.05;
const CLIENTS = 4;
/** A client sends one request in this time, so that the load does not depend on how fast the answers are. */
const PERIOD_MS = 1_000;
const TIMEOUT_MS = 60_000;
/** Small, so that the prompts of the first minute fill it. */
const STORE_MIB = 64;

type Request = readonly [path: string, body: object, headers?: Readonly<Record<string, string>>];

/** About `words` tokens that no other request begins with. */
const textOf = (index: number, words: number): string =>
  `Story ${index}: ${Array.from({ length: words }, (_, at) => `w${(index * 31 + at * 7) % 997}`).join(' ')}`;

const completion = (prompt: string, fields: object): object => ({ model: 'default', prompt, ...fields });

/** One request of each kind in turn. Every one differs from all before it. */
const MIX: readonly ((index: number) => Request)[] = [
  (index) => ['/v1/completions', completion(textOf(index, 400), { max_tokens: 16 })],
  (index) => ['/v1/completions', completion(`Hi ${index}`, { max_tokens: 120, stream: true })],
  (index) => ['/v1/completions', completion(`Hi ${index}`, { max_tokens: 40, n: 8, logprobs: 5 })],
  (index) => [
    '/v1/completions',
    completion(`JSON ${index}:`, {
      max_tokens: 40,
      response_format: {
        type: 'json_schema',
        json_schema: {
          name: 'row',
          schema: { type: 'object', properties: { [`field${index}`]: { type: 'string', maxLength: 8 } } },
        },
      },
    }),
  ],
  (index) => [
    '/v1/score',
    { model: 'default', prompt: textOf(index, 300), continuations: [' yes', ' no', ` maybe ${index}`] },
  ],
  (index) => ['/tokenize', { prompt: textOf(index, 2_000) }],
  (index) => [
    '/detokenize',
    { tokens: Array.from({ length: 4_000 }, (_, at) => 300 + ((index + at) % 3_000)) },
  ],
  (index) => [
    '/v1/completions',
    completion(`Once ${index}`, { max_tokens: 60, stream: true }),
    { 'x-resumable': 'true' },
  ],
  (index) => [
    '/v1/completions',
    completion(`Twice ${index}`, { max_tokens: 20 }),
    { 'idempotency-key': `soak-${index}` },
  ],
  (index) => [
    '/v1/completions',
    completion(textOf(index, 3_000), { max_tokens: 4, note: 'x'.repeat(500_000) }),
  ],
];

interface Sample {
  readonly minute: number;
  readonly origin: number;
  readonly worker: number;
}

const meanOf = (samples: readonly Sample[], of: 'origin' | 'worker', from: number, to: number): number =>
  mean(samples.filter(({ minute }) => minute >= from && minute < to).map((sample) => sample[of]));

/** Prints the mean of each minute, as two curves. */
function printCurves(samples: readonly Sample[]): void {
  const table = new Table({
    head: ['minute', 'origin, MiB', 'workerd, MiB'],
    style: { head: [], border: [] },
  });
  for (let minute = 0; minute <= samples.at(-1)!.minute; minute++) {
    const cells = (['origin', 'worker'] as const).map((of) =>
      meanOf(samples, of, minute, minute + 1).toFixed(0),
    );
    table.push([minute, ...cells]);
  }
  console.log(table.toString());
}

export const soakMix: Scenario = {
  name: 'soak',
  summary: `${MINUTES} minutes of mixed requests with a full prefix store, then ${IDLE_MINUTES} idle ones.`,
  async run() {
    const system = await startSystem({ CONTINUO_PREFIX_CACHE_MIB: String(STORE_MIB) });
    const started = performance.now();
    const minute = () => (performance.now() - started) / 60_000;
    const samples: Sample[] = [];
    const answers = new Map<number, number>();
    try {
      const key = await newTenant(system, 'soak');
      const pids = { origin: String(system.originPid()), worker: workerdOf(system) };
      let index = 0;
      const client = async (): Promise<void> => {
        while (minute() < MINUTES) {
          const period = sleep(PERIOD_MS);
          const [path, body, headers] = MIX[index % MIX.length]!(index++);
          const { status } = await post(`${system.url}${path}`, key, body, TIMEOUT_MS, headers);
          answers.set(status, (answers.get(status) ?? 0) + 1);
          await period;
        }
      };
      const watch = async (): Promise<void> => {
        for (; minute() < MINUTES + IDLE_MINUTES; await sleep(1_000)) {
          const [origin, worker] = [residentMiB(pids.origin), residentMiB(pids.worker)];
          samples.push({ minute: minute(), origin, worker });
        }
      };
      await Promise.all([watch(), ...Array.from({ length: CLIENTS }, client)]);
    } finally {
      await system.stop();
    }
    printCurves(samples);
    console.log(`answers by status: ${JSON.stringify(Object.fromEntries(answers))}`);
    return (['origin', 'worker'] as const).flatMap((of): Measurement[] => {
      const early = meanOf(
        samples,
        of,
        Math.min(WARM_UP_MINUTES, MINUTES / 2),
        Math.min(WARM_UP_MINUTES, MINUTES / 2) + 1,
      );
      const most = { atMost: ALLOWED_GROWTH * early };
      return [
        { figure: `${of} after the warm-up, MiB`, value: early },
        {
          figure: `${of} in the last minute of load, MiB`,
          value: meanOf(samples, of, MINUTES - 1, MINUTES),
          ...most,
        },
        {
          figure: `${of} in the last idle minute, MiB`,
          value: meanOf(samples, of, MINUTES + 1, MINUTES + 2),
          ...most,
        },
      ];
    });
  },
};
