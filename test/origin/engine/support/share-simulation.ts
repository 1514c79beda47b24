import { type TenantWork, TimeShares } from '../../../../origin/engine/scheduling/time-shares.ts';

/** What a simulated tenant wants during a part of the simulation. */
export interface Phase {
  /** Milliseconds of the engine's time. */
  readonly ms: number;
  /** Chunks of each of its prompts, one after the other without end; 0 = none. */
  readonly chunks: number;
  /** Sequences that decode. */
  readonly rows: number;
}

export interface SimulatedTenant {
  readonly weight: number;
  readonly flex?: boolean;
  readonly phases: readonly Phase[];
  /** Cost of a row relative to others: the length of its context. */
  readonly depth: number;
  /** Milliseconds of sampling per row. */
  readonly ownMs: number;
}

/** Milliseconds of a chunk, of a decode run without rows, and of each row. */
export interface Costs {
  readonly chunk: number;
  readonly run: number;
  readonly row: number;
  /** 0.2 = each run takes up to a fifth more or less. */
  readonly noise: number;
}

/** The state after a run. */
export interface Sample {
  readonly at: number;
  /** Had work since; Infinity = has none. */
  readonly since: number;
  readonly hasBothSince: number;
  /** Sum of its weighted shares of all runs while it had work. */
  readonly entitled: number;
  /** Sum of what the runs were worth to it: what its part of them takes alone. */
  readonly received: number;
  readonly prompts: number;
  readonly tokens: number;
}

class Tenant {
  readonly samples: Sample[] = [
    { at: 0, since: 0, hasBothSince: 0, entitled: 0, received: 0, prompts: 0, tokens: 0 },
  ];
  readonly name: string;
  readonly wants: SimulatedTenant;
  #left = 0;

  constructor(name: string, wants: SimulatedTenant) {
    this.name = name;
    this.wants = wants;
  }

  phase(at: number): Phase {
    let end = 0;
    for (const phase of this.wants.phases) if (at < (end += phase.ms)) return phase;
    return { ms: 0, chunks: 0, rows: 0 };
  }

  work(at: number): TenantWork | null {
    const { chunks, rows } = this.phase(at);
    if (chunks === 0) this.#left = 0;
    else if (this.#left === 0) this.#left = chunks;
    if (chunks + rows === 0) return null;
    const prompts = this.#left === 0 ? 'none' : this.#left <= 2 ? 'short' : 'long';
    return { weight: this.wants.weight, flex: this.wants.flex ?? false, prompts, rows };
  }

  computeChunk(): void {
    this.#left--;
  }
}

/**
 * Runs the shares with a model of costs.
 * @returns for each tenant, the state after each run
 */
export function simulate(
  tenants: readonly SimulatedTenant[],
  costs: Costs,
  random: () => number,
  ms: number,
  shares = new TimeShares(),
  clock: (elapsed: number) => number = (elapsed) => elapsed,
): readonly (readonly Sample[])[] {
  const all = tenants.map((wants, index) => new Tenant(`${index}`, wants));
  let at = 0;
  const workNow = () =>
    new Map(
      all.flatMap((tenant) => {
        const work = tenant.work(at);
        return work === null ? [] : [[tenant.name, work] as const];
      }),
    );
  /** @param worth by tenant, with the noise of the run */
  const note = (
    work: ReadonlyMap<string, TenantWork>,
    elapsed: number,
    kind: 'prefill' | 'decode',
    worth: ReadonlyMap<Tenant, number>,
  ) => {
    let weights = 0;
    for (const { weight } of work.values()) weights += weight;
    for (const tenant of all) {
      const last = tenant.samples.at(-1)!;
      const own = work.get(tenant.name);
      const received = worth.get(tenant) ?? 0;
      tenant.samples.push({
        at: at + elapsed,
        since: own === undefined ? Infinity : Math.min(last.since, at),
        hasBothSince: own?.prompts === 'long' && own.rows > 0 ? Math.min(last.hasBothSince, at) : Infinity,
        entitled: last.entitled + (own === undefined ? 0 : (elapsed * own.weight) / weights),
        received: last.received + received,
        prompts: last.prompts + (kind === 'prefill' ? received : 0),
        tokens: last.tokens + (kind === 'decode' && worth.has(tenant) ? tenant.phase(at).rows : 0),
      });
    }
    at += elapsed;
  };
  const noise = () => 1 + costs.noise * (2 * random() - 1);
  while (at < ms) {
    let work = workNow();
    if (work.size === 0) {
      note(work, 1, 'decode', new Map());
      continue;
    }
    const prompt = all.find(({ name }) => name === shares.prompt(work));
    if (prompt !== undefined) {
      prompt.computeChunk();
      const elapsed = costs.chunk * noise();
      shares.charge('prefill', clock(elapsed), new Map([[prompt.name, { rows: 1, size: 1, ownMs: 0 }]]));
      note(work, elapsed, 'prefill', new Map([[prompt, elapsed]]));
    }
    work = workNow();
    const names = shares.streams(work);
    const decoding = all.filter(({ name }) => names.has(name));
    if (decoding.length === 0) continue;
    const factor = noise();
    const own = (tenant: Tenant) => factor * tenant.phase(at).rows * tenant.wants.ownMs;
    const rowsOf = (tenant: Tenant) => factor * tenant.phase(at).rows * tenant.wants.depth * costs.row;
    let elapsed = factor * costs.run;
    for (const tenant of decoding) elapsed += own(tenant) + rowsOf(tenant);
    const parts = new Map(
      decoding.map((tenant) => [
        tenant.name,
        { rows: tenant.phase(at).rows, size: tenant.phase(at).rows * tenant.wants.depth, ownMs: own(tenant) },
      ]),
    );
    const worth = new Map(
      decoding.map((tenant) => [tenant, factor * costs.run + own(tenant) + rowsOf(tenant)]),
    );
    shares.charge('decode', clock(elapsed), parts);
    note(work, elapsed, 'decode', worth);
  }
  return all.map(({ samples }) => samples);
}

/**
 * Returns the least part of its share that a tenant has received in any window in which it always had work.
 * @param windowMs least length of a window
 */
export function leastShare(samples: readonly Sample[], windowMs = 1000, runMs = 0): number {
  return leastRatio(
    samples,
    windowMs,
    runMs,
    ({ since }) => since,
    ({ received }) => received,
  );
}

/**
 * Returns the least part of its share that its prompts have received while it had long prompts and streams.
 */
export function leastPromptShare(samples: readonly Sample[], windowMs = 1000, runMs = 0): number {
  return leastRatio(
    samples,
    windowMs,
    runMs,
    ({ hasBothSince }) => hasBothSince,
    ({ prompts }) => prompts,
  );
}

function leastRatio(
  samples: readonly Sample[],
  windowMs: number,
  runMs: number,
  since: (sample: Sample) => number,
  received: (sample: Sample) => number,
): number {
  let least = Infinity;
  let start = 0;
  for (const end of samples) {
    while (end.at - samples[start + 1]!.at >= windowMs) start++;
    const begin = samples[start]!;
    if (end.at - begin.at < windowMs || since(end) > begin.at) continue;
    least = Math.min(least, (received(end) - received(begin) + runMs) / (end.entitled - begin.entitled));
  }
  return least;
}
