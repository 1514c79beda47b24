import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { affinityKey, rank } from '../../../worker/upstreams/rendezvous.ts';
import { UpstreamHealth } from '../../../worker/upstreams/upstream-health.ts';

const NAMES = ['a', 'b', 'c', 'd', 'e'];
const keys = Array.from({ length: 2000 }, (_, index) => affinityKey('tenant', `prompt ${index}`));

describe('rendezvous hashing', () => {
  test('spreads keys evenly: each upstream is first for its share, within 20 %', () => {
    const firsts = Map.groupBy(keys, (key) => rank(NAMES, key)[0]);
    for (const name of NAMES) {
      const share = firsts.get(name)?.length ?? 0;
      expect(share).toBeGreaterThan((keys.length / NAMES.length) * 0.8);
      expect(share).toBeLessThan((keys.length / NAMES.length) * 1.2);
    }
  });

  test('moves only the keys of a removed upstream, to their second choice', () => {
    fc.assert(
      fc.property(fc.string(), fc.constantFrom(...NAMES), (key, gone) => {
        const before = rank(NAMES, key);
        const after = rank(
          NAMES.filter((name) => name !== gone),
          key,
        );
        expect(after).toEqual(before.filter((name) => name !== gone));
      }),
    );
  });

  test('sends prompts of one tenant with a common prefix to one upstream', () => {
    const system = 'You are a careful assistant. '.repeat(20);
    expect(affinityKey('t', `${system}one`)).toBe(affinityKey('t', `${system}two`));
    expect(affinityKey('t', system)).not.toBe(affinityKey('u', system));
    expect(affinityKey('t', [1, 2, 3])).toBe(affinityKey('t', [1, 2, 3]));
  });
});

describe('health', () => {
  test('orders upstreams with room first, then busy ones, then failing ones', () => {
    let now = 0;
    const health = new UpstreamHealth(() => now);
    for (let count = 0; count < 5; count += 1) health.begin('a')('failure');
    expect(health.order(['a', 'b', 'c'])).toEqual(['b', 'c', 'a']);
    for (let count = 0; count < 10; count += 1) health.begin('b');
    expect(health.order(['a', 'b', 'c'])).toEqual(['c', 'b', 'a']);
    now += 1_000;
    expect(health.order(['a', 'b', 'c'])).toEqual(['a', 'c', 'b']);
  });

  test('keeps affinity at low load, and up to 25 % above the average', () => {
    const health = new UpstreamHealth(() => 0);
    const begin = (name: string, count: number): void => {
      for (let index = 0; index < count; index += 1) health.begin(name);
    };
    begin('a', 3);
    expect(health.order(['a', 'b', 'c'])[0]).toBe('a');
    for (const name of ['b', 'c']) begin(name, 40);
    begin('a', 48);
    expect(health.order(['a', 'b', 'c'])[0]).toBe('a');
    begin('a', 8);
    expect(health.order(['a', 'b', 'c'])[0]).toBe('b');
  });

  test('counts a verdict once', () => {
    const health = new UpstreamHealth(() => 0);
    const verdict = health.begin('a');
    verdict('success');
    for (let count = 0; count < 9; count += 1) verdict('failure');
    expect(health.order(['a', 'b'])).toEqual(['a', 'b']);
  });
});
