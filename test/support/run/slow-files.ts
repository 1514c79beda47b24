import type { Reporter, TestModule } from 'vitest/node';

/** What a file may take on two quiet cores. */
const LIMIT_MS = 20_000;

/** On a busy machine, the limit grows with the run. */
const SHARE_OF_RUN = 1 / 8;

/**
 * Fails a run of `npm test` in which a file takes more than its time, and names the file. The limit is
 * wall-clock time, because what a file waits for costs as much as what it computes. Starts of what other
 * files use as well do not count.
 */
export class SlowFiles implements Reporter {
  private started = 0;

  onTestRunStart(): void {
    this.started = performance.now();
  }

  onTestRunEnd(modules: readonly TestModule[]): void {
    const limit = Math.max(LIMIT_MS, SHARE_OF_RUN * (performance.now() - this.started));
    const seconds = (ms: number) => (ms / 1_000).toFixed(1);
    for (const module of modules) {
      const duration = module.diagnostic().duration - (module.meta().startMs ?? 0);
      if (duration <= limit) continue;
      process.exitCode = 1;
      console.log(
        `${module.relativeModuleId} took ${seconds(duration)} s, but a file of \`npm test\` may take ${seconds(limit)} s. ` +
          'Make it faster, or move its slow tests to a *.long.test.ts file.',
      );
    }
  }
}
