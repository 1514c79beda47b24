import { describe, expect, it } from 'vitest';
import type { Submission } from '../../../origin/engine/messages.ts';
import { Driver, STEP_MS } from './support/engine-driver.ts';
import { CHUNK, endless, ends, longPrompt, shape } from './support/long-requests.ts';
import { ScriptedRunner } from './support/scripted-runner.ts';
import { NEUTRAL } from './support/submissions.ts';
import { transcribe } from './support/transcript.ts';

async function run(...submissions: readonly Submission[]) {
  const runner = new ScriptedRunner(shape(4));
  const driver = new Driver(runner);
  for (const submission of submissions) driver.submit(submission);
  await driver.finish();
  return { driver, runner };
}

const choicesOf = (driver: Driver, requestId: string, choices = 1) => [
  ...transcribe(driver.eventsOf(requestId), choices).choices.values(),
];

describe('a limit of the generation', () => {
  it('ends a sequence with what there is, and changes none of its tokens', async () => {
    const { driver } = await run({ ...endless('short', 100), maxGenerationMs: 10 * STEP_MS });
    const { driver: other } = await run(endless('long', 100));
    const [short] = choicesOf(driver, 'short');
    const [long] = choicesOf(other, 'long');
    expect(short?.ids).toEqual(long?.ids.slice(0, 12));
    expect(short?.finish).toMatchObject({ reason: 'length', stopReason: null, completionTokens: 12 });
    expect(ends(driver, 'short')).toEqual({ promptTokens: 2, completionTokens: 12 });
  });

  it('counts from the first token, not from the start of the prompt', async () => {
    const { driver } = await run({
      ...longPrompt('late', 40 * CHUNK),
      maxGenerationMs: STEP_MS,
    });
    expect(choicesOf(driver, 'late')[0]?.ids).toHaveLength(3);
  });

  it('does not extend a sequence', async () => {
    const { driver } = await run({ ...endless('few', 3), maxGenerationMs: 1_000 * STEP_MS });
    expect(choicesOf(driver, 'few')[0]?.ids).toHaveLength(3);
  });
});

describe('a limit of the prompt', () => {
  const limited = { ...longPrompt('cut', 40 * CHUNK), maxPromptMs: 5 * STEP_MS };

  it('ends the request without text, and without computing the rest of the prompt', async () => {
    const { driver, runner } = await run(limited);
    expect(choicesOf(driver, 'cut')[0]).toMatchObject({
      text: '',
      finish: { reason: 'length', stopReason: null, completionTokens: 0 },
    });
    expect(runner.prefills).toHaveLength(6);
    expect(ends(driver, 'cut')).toEqual({ promptTokens: 40 * CHUNK, completionTokens: 0 });
  });

  it('leaves the computed part in the prefix cache, so that repeated requests arrive', async () => {
    const runner = new ScriptedRunner(shape(4));
    const driver = new Driver(runner);
    let tries = 0;
    for (; tries < 20; tries++) {
      driver.submit({ ...limited, requestId: `${tries}` });
      await driver.finish();
      if (choicesOf(driver, `${tries}`)[0]?.ids.length === 4) break;
    }
    expect(tries).toBe(6);
    expect(runner.prefills).toHaveLength(40);
  });

  it('ends every choice of the prompt', async () => {
    const sampling = { ...NEUTRAL, temperature: 1 };
    const { driver } = await run({ ...limited, choices: 3, sampling });
    expect(choicesOf(driver, 'cut', 3).map(({ finish }) => finish?.completionTokens)).toEqual([0, 0, 0]);
  });

  it('does not apply to a prompt that is only evaluated or scored', async () => {
    const [{ tokens }] = limited.prompts as [Submission['prompts'][number]];
    const warm = await run({ ...limited, prompts: [{ tokens, maxTokens: 0 }] });
    expect(warm.runner.prefills).toHaveLength(40);
    const scored = await run({ ...limited, promptTopLogprobs: 0 });
    expect(choicesOf(scored.driver, 'cut')[0]?.ids).toHaveLength(4);
  });

  it('does not hold up other requests', async () => {
    const { driver } = await run(limited, endless('other', 30));
    expect(choicesOf(driver, 'other')[0]?.ids).toHaveLength(30);
  });
});
