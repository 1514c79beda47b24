import type { WireConstraint } from '../../../shared/generation.ts';
import { HOSTILE_CASES } from '../../support/grammar/hostile-cases.ts';
import { type Percentiles, percentiles } from './statistics.ts';
import type { Job, Target } from './target.ts';

/** Measures how hostile constraints affect other streams. */

export interface HostileOptions {
  readonly seconds: number;
  /** Concurrent well-behaved streams; each is replaced when it ends. */
  readonly streams: number;
  readonly job: (index: number) => Job;
  /** Clients that send hostile constraints in turn. Each is a tenant if the target has tenants. */
  readonly intruders: number;
  readonly intruderTokens: number;
}

export interface HostileResult {
  /** Inter-token gaps of the well-behaved streams without other load. */
  readonly quiet: Percentiles;
  /** The same with plain requests in place of the hostile ones. */
  readonly visited: Percentiles;
  readonly hostile: Percentiles;
  /** Well-behaved streams that failed. */
  readonly failures: number;
  /** Hostile requests by status. */
  readonly answers: Readonly<Record<string, number>>;
  /** Milliseconds to the first byte of an answer, and the slowest case. */
  readonly slowest: { readonly ms: number; readonly name: string };
}

interface Phase {
  readonly gaps: Percentiles;
  readonly failures: number;
}

async function phase(target: Target, options: HostileOptions, intrude: (until: number) => Promise<void>) {
  const begun = performance.now();
  const until = begun + 1000 * options.seconds;
  const gaps: number[] = [];
  let failures = 0;
  const stream = async (number: number): Promise<void> => {
    for (let index = number; performance.now() < until; index += options.streams) {
      const { events, status, error } = await target.run(options.job(index));
      if (status !== 200 || error !== null) failures += 1;
      for (let at = 1; at < events.length; at += 1) {
        if ((events[at] as number) <= until) gaps.push((events[at] as number) - (events[at - 1] as number));
      }
    }
  };
  const streams = Array.from({ length: options.streams }, (_, number) => stream(number));
  await Promise.all([...streams, intrude(until)]);
  return { gaps: percentiles(gaps), failures } satisfies Phase;
}

export async function measureHostile(target: Target, options: HostileOptions): Promise<HostileResult> {
  const answers: Record<string, number> = {};
  let slowest = { ms: 0, name: '' };
  const visit = (constraintOf: ((index: number) => WireConstraint) | null) => async (until: number) => {
    let next = 0;
    const client = async (number: number): Promise<void> => {
      while (performance.now() < until) {
        const index = next++ % HOSTILE_CASES.length;
        const constraint = constraintOf?.(index) ?? null;
        const job: Job = {
          ...options.job(10_000 + next),
          maxTokens: options.intruderTokens,
          tenant: `intruder ${number}`,
        };
        const trace = await target.run({ ...job, ...(constraint && { constraint }) });
        if (constraint === null) continue;
        // The messages differ from case to case.
        const answer = `${trace.status}${trace.status === 200 && trace.error !== null ? ', then an error' : ''}`;
        answers[answer] = (answers[answer] ?? 0) + 1;
        const ms = (trace.events[0] ?? trace.ended) - trace.sent;
        if (ms > slowest.ms) slowest = { ms, name: HOSTILE_CASES[index]?.name ?? '' };
      }
    };
    await Promise.all(Array.from({ length: options.intruders }, (_, number) => client(number)));
  };
  await phase(target, { ...options, seconds: 1 }, async () => undefined);
  const quiet = await phase(target, options, async () => undefined);
  const visited = await phase(target, options, visit(null));
  const hostile = await phase(
    target,
    options,
    visit((index) => (HOSTILE_CASES[index] as (typeof HOSTILE_CASES)[number]).wire()),
  );
  return {
    quiet: quiet.gaps,
    visited: visited.gaps,
    hostile: hostile.gaps,
    failures: quiet.failures + visited.failures + hostile.failures,
    answers,
    slowest,
  };
}
