import { setTimeout as sleep } from 'node:timers/promises';
import { startSystem } from '../../support/system.ts';
import { residentMiB, workerdOf } from './resident.ts';
import { type Answer, newTenant, post, type Scenario } from './scenario.ts';

const PARALLEL = 20;
const ROUNDS = 10;
const TIMEOUT_MS = 60_000;
/** Just below the limits of the Worker: the number of values, and 2 MiB. */
const VALUES = 99_000;
const BYTES = 2 ** 21 - 100;

function bodyAtTheLimit(): string {
  const values = Array<string>(VALUES).fill('{}').join(',');
  const rest = BYTES - values.length;
  return `{"x":[${values}],"y":"${'y'.repeat(rest)}"}`;
}

export const bodyFlood: Scenario = {
  name: 'body-flood',
  summary: `${PARALLEL} parallel bodies of 2 MiB with 99,000 objects, ${ROUNDS} times, beside another tenant.`,
  async run() {
    const system = await startSystem();
    const url = `${system.url}/v1/completions`;
    const [flood, quiet] = [await newTenant(system, 'flood'), await newTenant(system, 'quiet')];
    const pid = workerdOf(system);
    const body = bodyAtTheLimit();
    const answers: Answer[] = [];
    let peak = 0;
    let over = false;
    try {
      await post(url, quiet, { model: 'default', prompt: 'Hello', max_tokens: 4 }, TIMEOUT_MS);
      const before = residentMiB(pid);
      const sampling = (async () => {
        for (; !over; await sleep(10)) peak = Math.max(peak, residentMiB(pid));
      })();
      const others: Answer[] = [];
      for (let round = 0; round < ROUNDS; round++) {
        const bodies = Array.from({ length: PARALLEL }, () => post(url, flood, body, TIMEOUT_MS));
        others.push(await post(url, quiet, { model: 'default', prompt: 'Hello', max_tokens: 4 }, TIMEOUT_MS));
        answers.push(...(await Promise.all(bodies)));
      }
      over = true;
      await sampling;
      const count = (status: number) => answers.filter((answer) => answer.status === status).length;
      return [
        { figure: 'memory of workerd before, MiB', value: before },
        { figure: 'memory of workerd at its peak, MiB', value: peak },
        { figure: 'bodies answered with 400', value: count(400) },
        { figure: 'bodies answered with 503', value: count(503) },
        { figure: 'other answers', value: answers.length - count(400) - count(503), atMost: 0 },
        {
          figure: 'answers to small requests of another tenant',
          value: others.filter(({ status }) => status === 200).length,
          atLeast: ROUNDS,
        },
      ];
    } finally {
      over = true;
      await system.stop();
    }
  },
};
