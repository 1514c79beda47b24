import { mulberry32 } from '../../support/random.ts';
import { startSystem } from '../../support/system.ts';
import { newTenant, post, type Scenario, usageOf } from './scenario.ts';

const REQUESTS = 50;
const BUDGET = 1_000;
const TIMEOUT_MS = 60_000;

/** 100 characters with about three tokens each, which the Worker estimates at 25 tokens. */
function denseText(index: number): string {
  const random = mulberry32(index);
  return Array.from({ length: 100 }, () => String.fromCodePoint(0x4e00 + Math.floor(random() * 20_000))).join(
    '',
  );
}

export const dense: Scenario = {
  name: 'dense',
  summary: `${REQUESTS} parallel requests whose text has many times the estimated tokens; a budget of ${BUDGET} tokens per day.`,
  async run() {
    const system = await startSystem();
    try {
      const key = await newTenant(system, 'dense', { tokens_per_day: BUDGET });
      const body = (index: number) => ({ model: 'default', prompt: denseText(index), max_tokens: 4 });
      const answers = await Promise.all(
        Array.from({ length: REQUESTS }, (_, index) =>
          post(`${system.url}/v1/completions`, key, body(index), TIMEOUT_MS),
        ),
      );
      const count = (status: number) => answers.filter((answer) => answer.status === status).length;
      const usage = await usageOf(system, 'tenant=dense', ({ completed }) => completed === count(200));
      const used = usage.prompt_tokens + usage.completion_tokens;
      return [
        { figure: 'served', value: count(200) },
        { figure: 'refused with 429', value: count(429) },
        { figure: 'tokens over the budget', value: Math.max(0, used - BUDGET), atMost: 0 },
      ];
    } finally {
      await system.stop();
    }
  },
};
