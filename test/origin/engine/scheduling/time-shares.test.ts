import { describe, expect, it } from 'vitest';
import {
  type RunPart,
  type TenantWork,
  TimeShares,
} from '../../../../origin/engine/scheduling/time-shares.ts';
import { randomFrom, runs } from '../../../support/random.ts';
import {
  type Costs,
  leastPromptShare,
  leastShare,
  type Phase,
  type SimulatedTenant,
  simulate,
} from '../support/share-simulation.ts';

const WORKLOADS = runs(200);
const COSTS: Costs = { chunk: 4, run: 0.5, row: 0.1, noise: 0.2 };
const PHASES: readonly Omit<Phase, 'ms'>[] = [
  { chunks: 0, rows: 0 },
  { chunks: 0, rows: 1 },
  { chunks: 0, rows: 20 },
  { chunks: 1, rows: 0 },
  { chunks: 3, rows: 0 },
  { chunks: 50, rows: 0 },
  { chunks: 50, rows: 3 },
];

const always = (chunks: number, rows: number, weight = 1, flex = false): SimulatedTenant => {
  return { weight, flex, depth: 1, ownMs: 0, phases: [{ ms: Infinity, chunks, rows }] };
};
const run = (...tenants: readonly SimulatedTenant[]) => simulate(tenants, COSTS, randomFrom(1), 5000);
const rate = (tenants: readonly SimulatedTenant[], tenant = 0) =>
  run(...tenants)[tenant]!.at(-1)!.tokens / 5000;
const allTokens = (...tenants: readonly SimulatedTenant[]) =>
  run(...tenants).reduce((sum, samples) => sum + samples.at(-1)!.tokens, 0);

describe('time shares', () => {
  it('give each tenant 0.9 of its share in any second in which it has work, less three chunks, and 0.8 in one workload of 1,000', () => {
    let fewer = 0;
    const random = randomFrom(2);
    const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)]!;
    for (let workload = 0; workload < WORKLOADS; workload++) {
      const costs = {
        chunk: 2 + 4 * random(),
        run: 0.3 + 0.5 * random(),
        row: 0.05 + 0.1 * random(),
        noise: 0.2,
      };
      const tenants = Array.from(
        { length: 1 + Math.floor(6 * random()) },
        (): SimulatedTenant => ({
          weight: pick([0.5, 1, 1, 1, 2, 4]),
          depth: 1 + 2 * random(),
          ownMs: pick([0, 0.02, 0.2]),
          phases: Array.from({ length: 4 }, () => ({ ms: 100 + 2400 * random(), ...pick(PHASES) })),
        }),
      );
      const chunks = 3 * costs.chunk * (1 + costs.noise);
      for (const samples of simulate(tenants, costs, random, 4000)) {
        const share = leastShare(samples, 1000, chunks);
        const promptShare = leastPromptShare(samples, 1000, chunks);
        expect(Math.min(share, 2 * promptShare + 0.1), `workload ${workload}`).toBeGreaterThan(0.8);
        if (share <= 0.9 || promptShare <= 0.4) fewer++;
      }
    }
    expect(fewer).toBeLessThanOrEqual(Math.floor(WORKLOADS / 1000));
  });

  it.each([
    ['long prompts', always(50, 0)],
    ['short prompts', always(1, 0)],
    ['16 streams', always(0, 16)],
    ['63 streams', always(0, 63)],
    ['prompts and streams', always(50, 30)],
    ['streams that are sampled slowly', { ...always(0, 20), ownMs: 0.3 }],
  ])('leave a stream 0.45 of its tokens beside %s of another tenant', (_, load) => {
    expect(rate([always(0, 1), load])).toBeGreaterThan(0.45 * rate([always(0, 1)]));
  });

  it('leave a stream its share beside any number of tenants and weights', () => {
    const alone = rate([always(0, 1)]);
    expect(rate([always(0, 1), always(50, 0), always(50, 0), always(0, 20)])).toBeGreaterThan(
      (0.9 * alone) / 4,
    );
    expect(rate([always(0, 1, 3), always(50, 0)])).toBeGreaterThan(0.9 * 0.75 * alone);
    expect(rate([always(0, 1, 0.2), always(50, 0)])).toBeGreaterThan((0.9 * alone) / 6);
  });

  it('keep 0.95 of the throughput of decoding together, if that gives everybody its share', () => {
    expect(allTokens(always(0, 1), always(0, 2))).toBeGreaterThan(0.95 * allTokens(always(0, 3)));
    expect(allTokens(always(0, 4), always(0, 5))).toBeGreaterThan(0.95 * allTokens(always(0, 9)));
    const six = Array.from({ length: 6 }, () => always(0, 4));
    expect(allTokens(...six)).toBeGreaterThan(0.95 * allTokens(always(0, 24)));
  });

  it('divide the time of a tenant between its prompts and its streams', () => {
    const promptsOf = (share: number) => {
      const [samples] = simulate([always(50, 1)], COSTS, randomFrom(1), 5000, new TimeShares(share));
      return samples!.at(-1)!.prompts / 5000;
    };
    expect(promptsOf(0.5)).toBeCloseTo(0.5, 1);
    expect(promptsOf(0.8)).toBeCloseTo(0.8, 1);
  });

  it('leave flex work a small share, and what others do not use', () => {
    const flex = always(50, 8, 1, true);
    const [stream, work] = run(always(0, 1), flex);
    expect(stream!.at(-1)!.tokens / 5000).toBeGreaterThan(0.85 * rate([always(0, 1)]));
    expect(work!.at(-1)!.received).toBeGreaterThan(0.02 * 5000);
  });

  it('let nobody starve after a jump of the clock', () => {
    for (const jump of [-1e12, 1e12, Number.NaN]) {
      let runs = 0;
      const clock = (elapsed: number) => (++runs % 500 === 0 ? jump : elapsed);
      const tenants = [always(0, 1), always(50, 0)];
      for (const samples of simulate(tenants, COSTS, randomFrom(1), 5000, new TimeShares(), clock)) {
        expect(leastShare(samples)).toBeGreaterThan(0.4);
      }
    }
  });
});

describe('a chunk that short prompts of others stop', () => {
  const LONG = 'long';
  const long: TenantWork = { weight: 1, flex: false, prompts: 'long', rows: 0 };
  const one: RunPart = { rows: 1, size: 1, ownMs: 0 };

  /**
   * Computes chunks of one tenant, which others stop at random.
   * @returns the milliseconds of its chunks so far that counted, and that were lost, after each run
   */
  function simulateStops(others: number, gapMs: number, chunkMs: number, random: () => number) {
    const shares = new TimeShares();
    const next = Array.from({ length: others }, () => gapMs * random());
    const samples = [{ at: 0, useful: 0, lost: 0 }];
    let isStopped = false;
    for (let at = 0; at < 5000; at = samples.at(-1)!.at) {
      const work = new Map([[LONG, long]]);
      next.forEach((time, index) => {
        if (time <= at) work.set(`${index}`, { ...long, prompts: 'short' });
      });
      const turn = shares.prompt(work)!;
      let elapsed = turn === LONG ? chunkMs : 1 + random();
      let { useful, lost } = samples.at(-1)!;
      const due = next.findIndex((time) => time > at && time < at + elapsed);
      const soFar = next[due]! - at;
      if (turn === LONG && !isStopped && due >= 0 && shares.mayStop(`${due}`, 1, new Set([LONG]), soFar)) {
        isStopped = true;
        elapsed = soFar + 0.2;
        lost += elapsed;
        shares.chargeStop(`${due}`, new Set([LONG]), elapsed);
      } else {
        if (turn === LONG) {
          isStopped = false;
          useful += elapsed;
        } else next[Number(turn)] = at + elapsed + gapMs * random();
        shares.charge('prefill', elapsed, new Map([[turn, one]]));
      }
      samples.push({ at: at + elapsed, useful, lost });
    }
    return samples;
  }

  it('leaves its tenant 0.9 of its share in any second, less three chunks, and costs it a sixth of its time at most', () => {
    const random = randomFrom(3);
    let allLost = 0;
    for (let workload = 0; workload < WORKLOADS; workload++) {
      const chunkMs = 2 + 6 * random();
      const others = 1 + Math.floor(8 * random());
      const samples = simulateStops(others, 1 + 60 * random(), chunkMs, random);
      allLost += samples.at(-1)!.lost;
      let end = 0;
      for (const from of samples) {
        while (end < samples.length && samples[end]!.at < from.at + 1000) end++;
        const to = samples[end];
        if (to === undefined) break;
        const [useful, lost] = [to.useful - from.useful, to.lost - from.lost];
        expect(useful, `workload ${workload}`).toBeGreaterThan(900 / (1 + others) - 3 * chunkMs);
        expect(lost, `workload ${workload}`).toBeLessThan(useful / 5 + 10 + chunkMs);
      }
    }
    expect(allLost).toBeGreaterThan(0);
  });

  it.each([1e12, Number.NaN, -1e12])(
    'may be stopped as before after a jump of the clock by %d ms',
    (jump) => {
      const shares = new TimeShares();
      const work = new Map([[LONG, long]]);
      const finish = (chunks: number) => {
        for (let chunk = 0; chunk < chunks; chunk++) {
          shares.prompt(work);
          shares.charge('prefill', 4, new Map([[LONG, one]]));
        }
      };
      finish(1);
      shares.chargeStop('first', new Set([LONG]), jump);
      finish(200);
      expect(shares.mayStop('second', 1, new Set([LONG]), 2)).toBe(true);
      for (let stops = 0; stops < 10; stops++) shares.chargeStop(`${stops}`, new Set([LONG]), 2);
      expect(shares.mayStop('third', 1, new Set([LONG]), 2)).toBe(false);
    },
  );

  it('is not stopped by a tenant that has taken its share in advance', () => {
    const shares = new TimeShares();
    const both = new Map([
      [LONG, long],
      ['short', { ...long, prompts: 'short' as const }],
    ]);
    shares.prompt(both);
    shares.charge('prefill', 4, new Map([[LONG, one]]));
    expect(shares.mayStop('short', 1, new Set([LONG]), 2)).toBe(true);
    shares.chargeStop('short', new Set([LONG]), 4);
    shares.prompt(both);
    shares.chargeStop('short', new Set([LONG]), 4);
    shares.charge('prefill', 3, new Map([['short', one]]));
    expect(shares.mayStop('short', 1, new Set([LONG]), 2)).toBe(false);
  });
});

describe('the next chunk', () => {
  const work = (...tenants: readonly [string, Partial<TenantWork>][]) =>
    new Map(
      tenants.map(([name, fields]) => [
        name,
        { weight: 1, flex: false, prompts: 'long', rows: 0, ...fields } satisfies TenantWork,
      ]),
    );
  const part = (name: string): ReadonlyMap<string, RunPart> =>
    new Map([[name, { rows: 1, size: 1, ownMs: 0 }]]);

  it('is that of a short prompt, but after a few in advance that of a tenant that lags behind', () => {
    const shares = new TimeShares();
    const all = work(['long', {}], ['short', { prompts: 'short' }]);
    const turns = Array.from({ length: 40 }, () => {
      const turn = shares.prompt(all)!;
      shares.charge('prefill', 4, part(turn));
      return turn;
    });
    expect(turns.slice(0, 3)).toEqual(['short', 'short', 'short']);
    expect(turns.slice(10).filter((turn) => turn === 'long').length).toBeGreaterThanOrEqual(14);
  });

  /** Computes chunks of 4 ms and returns whose they were. */
  const turnsOf = (shares: TimeShares, all: ReturnType<typeof work>, count: number) =>
    Array.from({ length: count }, () => {
      const turn = shares.prompt(all)!;
      shares.charge('prefill', 4, part(turn));
      return turn;
    });

  it('is again that of a short prompt, after its tenant has been idle for the time that it took in advance', () => {
    const shares = new TimeShares();
    const both = work(['long', {}], ['short', { prompts: 'short' }]);
    expect(turnsOf(shares, both, 4)).toEqual(['short', 'short', 'short', 'long']);
    turnsOf(shares, work(['long', {}]), 10);
    expect(turnsOf(shares, both, 4)).toEqual(['short', 'short', 'short', 'long']);
  });

  it('is not that of a tenant that was idle, beyond its share from then on', () => {
    const shares = new TimeShares();
    const both = work(['busy', {}], ['idle', {}]);
    turnsOf(shares, both, 1);
    shares.prompt(both);
    shares.charge('prefill', 12, part('idle'));
    shares.prompt(work(['busy', {}]));
    shares.charge('prefill', 80, part('busy'));
    const turns = turnsOf(shares, both, 20);
    expect(turns.filter((turn) => turn === 'idle').length).toBeLessThanOrEqual(11);
  });

  it('is that of a tenant that lags behind, however many others have short prompts', () => {
    const shares = new TimeShares();
    const shorts = ['a', 'b', 'c', 'd'].map((name): [string, Partial<TenantWork>] => [
      name,
      { prompts: 'short' },
    ]);
    const all = work(['long', { weight: 4 }], ...shorts);
    expect(turnsOf(shares, all, 400).filter((turn) => turn === 'long').length).toBeGreaterThan(180);
  });

  it('is that of each tenant in turn, while the clock stands still', () => {
    const shares = new TimeShares();
    const all = work(['a', {}], ['b', {}], ['c', {}]);
    const turns = Array.from({ length: 6 }, () => {
      const turn = shares.prompt(all)!;
      shares.charge('prefill', 0, part(turn));
      return turn;
    });
    expect(turns).toEqual(['a', 'b', 'c', 'a', 'b', 'c']);
  });

  it('of a tenant that comes and goes waits for those that have work all the time', () => {
    const shares = new TimeShares();
    const count = { always: 0, often: 0 };
    for (let turns = 0; turns < 100; turns++) {
      shares.prompt(work(['always', {}]));
      const turn = shares.prompt(work(['always', {}], ['often', {}])) as keyof typeof count;
      shares.charge('prefill', 4, part(turn));
      count[turn]++;
    }
    expect(count.always).toBeGreaterThanOrEqual(48);
  });
});
