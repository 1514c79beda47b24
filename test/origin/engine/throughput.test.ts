import { describe, expect, it } from 'vitest';
import { Throughput } from '../../../origin/engine/admission.ts';

describe('the estimate of a wait', () => {
  it('is the time so many sequences have lately taken to finish', () => {
    const throughput = new Throughput(8);
    for (let at = 0; at <= 1000; at += 100) throughput.recordFinish(at);
    // The last eight finishes, from 300 ms on: 700 ms for eight of them.
    expect(throughput.waitFor(4, 1000)).toBe(350);
  });

  it('grows when nothing finishes any more, and never promises more than a minute or less than a tenth of a second', () => {
    const throughput = new Throughput(8);
    throughput.recordFinish(0);
    expect(throughput.waitFor(1, 5_000)).toBe(5_000);
    expect(throughput.waitFor(1, 500_000)).toBe(60_000);
    expect(throughput.waitFor(1, 1)).toBe(100);
  });

  it('does not count the time in which more could have been done', () => {
    const throughput = new Throughput(8);
    for (let at = 0; at <= 1000; at += 100) throughput.recordFinish(at);
    throughput.resume(3_601_000);
    expect(throughput.waitFor(4, 3_601_000)).toBe(350);
    for (let at = 1; at <= 3; at++) throughput.recordFinish(3_601_000 + 100 * at);
    expect(throughput.waitFor(4, 3_601_300)).toBe(350);
  });

  it('is a second while nothing is known', () => {
    expect(new Throughput(8).waitFor(10, 0)).toBe(1_000);
  });
});
