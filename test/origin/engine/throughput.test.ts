import { describe, expect, it } from 'vitest';
import { Throughput } from '../../../origin/engine/admission.ts';

describe('the estimated wait', () => {
  it('is the time that as many sequences have recently taken to finish', () => {
    const throughput = new Throughput(8);
    for (let at = 0; at <= 1000; at += 100) throughput.recordFinish(at);
    // The last eight finishes took 700 ms, from 300 ms to 1,000 ms.
    expect(throughput.waitFor(4, 1000)).toBe(350);
  });

  it('grows while nothing finishes, and stays between 0.1 s and 60 s', () => {
    const throughput = new Throughput(8);
    throughput.recordFinish(0);
    expect(throughput.waitFor(1, 5_000)).toBe(5_000);
    expect(throughput.waitFor(1, 500_000)).toBe(60_000);
    expect(throughput.waitFor(1, 1)).toBe(100);
  });

  it('excludes the time in which slots were free', () => {
    const throughput = new Throughput(8);
    for (let at = 0; at <= 1000; at += 100) throughput.recordFinish(at);
    throughput.resume(3_601_000);
    expect(throughput.waitFor(4, 3_601_000)).toBe(350);
    for (let at = 1; at <= 3; at++) throughput.recordFinish(3_601_000 + 100 * at);
    expect(throughput.waitFor(4, 3_601_300)).toBe(350);
  });

  it('is one second before the first finish', () => {
    expect(new Throughput(8).waitFor(10, 0)).toBe(1_000);
  });
});
