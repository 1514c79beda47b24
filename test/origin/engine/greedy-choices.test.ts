import { describe, expect, it } from 'vitest';
import { Driver } from './support/engine-driver.ts';
import { ScriptedRunner } from './support/scripted-runner.ts';
import { NEUTRAL, submission } from './support/submissions.ts';
import { transcribe } from './support/transcript.ts';
import { shape } from './support/workload.ts';

const greedy = { ...NEUTRAL, temperature: 0 };

describe('greedy choices', () => {
  it('are computed once, sent as often as requested, and all counted', async () => {
    const runner = new ScriptedRunner(shape(8));
    const driver = new Driver(runner);
    driver.submit(
      submission({ requestId: 'r', choices: 5, sampling: greedy, ignoreEos: true, topLogprobs: 1 }),
    );
    await driver.finish();
    const { choices, end } = transcribe(driver.eventsOf('r'), 5);
    expect(choices.size).toBe(5);
    for (const choice of choices.values()) {
      expect(choice).toEqual({ ...choices.get(0), finish: choice.finish });
      expect(choice.tokens).toHaveLength(8);
    }
    expect(end).toEqual({ promptTokens: 4, completionTokens: 40 });
    expect(runner.decodes).toHaveLength(7);
    expect(runner.decodes.every(({ rows }) => rows === runner.shape.minRows)).toBe(true);
  });

  it('take one place in the waiting queue', () => {
    const driver = new Driver(new ScriptedRunner(shape(1)), { maxWaiting: 0 });
    driver.submit(submission({ requestId: 'r', choices: 5, sampling: greedy }));
    expect(driver.refused.size).toBe(0);
  });
});
