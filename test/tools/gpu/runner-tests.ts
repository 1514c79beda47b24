import { afterAll, beforeAll, describe, it } from 'vitest';
import type { ModelRunner } from '../../../origin/model/model-runner.ts';
import { type SyntheticEngine, syntheticEngine } from '../../origin/engine/support/synthetic-engine.ts';
import { type RunnerCase, type RunnerOptions, runnerCases } from './runners.ts';

/** Describes tests for each runner that this machine has; of the others, one test is skipped and says why. */
export function onEachRunner(what: string, tests: (one: RunnerCase) => void): void {
  for (const one of runnerCases()) {
    const title = `${what} on ${one.name}`;
    if (one.absent === null) describe(title, () => tests(one));
    else it.skip(`${title}: ${one.absent}`);
  }
}

/** Opens a synthetic model for the tests of a runner. It exists only within them. */
export function syntheticRunner({ precision, open }: RunnerCase, options: RunnerOptions) {
  let model: SyntheticEngine;
  let runner: ModelRunner;
  beforeAll(async () => {
    model = syntheticEngine({ precision, contextLength: 128 });
    runner = await open(model.data.model.directory, options);
  });
  afterAll(() => runner.dispose());
  return {
    get model() {
      return model;
    },
    get runner() {
      return runner;
    },
  };
}
