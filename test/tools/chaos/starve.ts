import { startSystem } from '../../support/system.ts';
import { type Answer, newTenant, post, type Scenario } from './scenario.ts';

const TIMEOUT_MS = 300_000;

/** One request of 256 long sequences, and two tenants that come after it. */
const ATTACK = { model: 'default', prompt: ['a', 'b'], n: 128, max_tokens: 2000, ignore_eos: true };
const TINY = { model: 'default', prompt: 'Hello', max_tokens: 4 };

const answered = (answers: readonly Answer[]) => answers.filter(({ status }) => status === 200);
const slowest = (answers: readonly Answer[]) => Math.max(...answers.map(({ ms }) => ms)) / 1000;

export const starve: Scenario = {
  name: 'starve',
  summary: 'One request with 256 sequences of 2,000 tokens; two other tenants send 4 and 40 small ones.',
  async run() {
    const system = await startSystem();
    const url = `${system.url}/v1/completions`;
    const end = new AbortController();
    try {
      const [greedy, quiet, busy] = [
        await newTenant(system, 'greedy'),
        await newTenant(system, 'quiet'),
        await newTenant(system, 'busy'),
      ];
      const attack = await fetch(url, {
        method: 'POST',
        headers: { authorization: `Bearer ${greedy}`, 'content-type': 'application/json' },
        body: JSON.stringify({ ...ATTACK, stream: true }),
        signal: end.signal,
      });
      await attack.body?.getReader().read();
      const send = (key: string, count: number) =>
        Promise.all(Array.from({ length: count }, () => post(url, key, TINY, TIMEOUT_MS)));
      const [four, forty] = await Promise.all([send(quiet, 4), send(busy, 40)]);
      return [
        { figure: 'answers to 4 requests of a second tenant', value: answered(four).length, atLeast: 4 },
        { figure: 'slowest of them, s', value: slowest(four) },
        { figure: 'answers to 40 requests of a third tenant', value: answered(forty).length, atLeast: 40 },
        { figure: 'slowest of them, s', value: slowest(forty) },
      ];
    } finally {
      end.abort();
      await system.stop();
    }
  },
};
