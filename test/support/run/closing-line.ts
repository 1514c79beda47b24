import type { Reporter, TestModule } from 'vitest/node';
import { findChromium, NO_CHROMIUM } from '../browser/chromium.ts';

/** Ends every run with a line `N passed, N failed, N skipped`, after why browser tests are skipped. */
export class ClosingLine implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandled: readonly unknown[]): void {
    const count = { passed: 0, failed: 0, skipped: 0, pending: 0 };
    for (const module of modules) {
      for (const test of module.children.allTests()) count[test.result().state] += 1;
      // A file that could not be collected has failed, although it has no tests.
      if (module.state() === 'failed' && module.errors().length > 0) count.failed += 1;
    }
    const skipped = modules.filter((module) => module.state() === 'skipped');
    if (skipped.some(({ moduleId }) => moduleId.includes('/test/e2e/site/')) && findChromium() === null)
      console.log(NO_CHROMIUM);
    const failed = count.failed + count.pending + unhandled.length;
    console.log(`${count.passed} passed, ${failed} failed, ${count.skipped} skipped`);
  }
}
