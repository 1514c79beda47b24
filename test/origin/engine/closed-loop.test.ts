import { describe, expect, it } from 'vitest';
import { closedLoop } from './support/simulated-card.ts';

/** Loads of 128 streams on a card and a host of which only the times are simulated. */

const STORE = 2 ** 22;

describe('a card with 128 streams', () => {
  it.each([
    [{ promptTokens: 64, tokens: 100, requests: 320, prefixStoreBytes: 0 }, 28_000],
    [{ promptTokens: 64, tokens: 100, requests: 320, prefixStoreBytes: STORE }, 28_000],
    [{ promptTokens: 512, tokens: 128, requests: 256, prefixStoreBytes: STORE }, 14_000],
  ])('begins runs early while requests end and begin in every step: %o', async (load, leastRate) => {
    const { decodes, ms } = await closedLoop(load);
    const early = decodes.filter((run) => run.early).length / decodes.length;
    const tokens = decodes.reduce((sum, { rows }) => sum + rows, 0);
    expect(early).toBe(1);
    expect((1000 * tokens) / ms).toBeGreaterThan(leastRate);
  });

  it('computes a burst of 128 prompts of 64 tokens in 16 runs, and the first tokens within 150 ms', async () => {
    const { card, firstAfter } = await closedLoop({ promptTokens: 64, tokens: 64, requests: 128 });
    expect(card.prompts.map(({ prompts }) => prompts)).toEqual(Array(16).fill(8));
    expect(firstAfter[64]).toBeLessThan(75);
    expect(firstAfter.at(-1)).toBeLessThan(150);
  });
});
