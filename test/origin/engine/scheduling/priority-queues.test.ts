import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  PriorityQueues,
  type PrioritySequence,
} from '../../../../origin/engine/scheduling/priority-queues.ts';
import type { WaitingRequest } from '../../../../origin/engine/scheduling/waiting-queue.ts';
import { runs } from '../../../support/random.ts';

/** A sequence without content: it runs for a number of steps. */
interface Run extends PrioritySequence {
  readonly request: Runs;
  readonly length: number;
  done: number;
}

class Runs implements WaitingRequest<Run> {
  readonly all: readonly Run[];
  #taken = 0;

  readonly tenantId: string;
  readonly flex: boolean;
  readonly weight: number;

  constructor(tenantId: string, flex: boolean, lengths: readonly number[], weight = 1) {
    this.tenantId = tenantId;
    this.flex = flex;
    this.weight = weight;
    this.all = lengths.map((length) => ({ request: this, length, cost: length, done: 0, order: 0 }));
  }

  get waiting(): number {
    return this.all.length - this.#taken;
  }

  takeSequence(): Run {
    return this.all[this.#taken++]!;
  }
}

/** A plain form of the engine: one step moves sequences as the queues say, then runs every holder once. */
class Machine {
  readonly queues: PriorityQueues<Run, Runs>;
  readonly slots: number;
  readonly suspended = new Set<Run>();
  readonly requests: Runs[] = [];
  holders: Run[] = [];
  suspensions = 0;
  /** Interactive sequences that got a slot while flex ones waited for their first. */
  overtakenInARow = 0;
  #waitingFlex = 0;

  constructor(slots: number) {
    this.slots = slots;
    this.queues = new PriorityQueues(slots, 10_000);
  }

  push(request: Runs): void {
    this.queues.push(request);
    this.requests.push(request);
    if (request.flex) this.#waitingFlex += request.all.length;
  }

  step(): void {
    for (let moves = 0; moves < 2 * this.slots; moves++) {
      if (this.holders.length === this.slots && !this.#suspendOne()) break;
      const next = this.queues.take(this.holders);
      if (next === null) break;
      this.#start(next);
    }
    this.#expectPolicy();
    for (const run of this.holders) run.done++;
    this.holders = this.holders.filter(({ done, length }) => done < length);
  }

  /** Requires that no waiting tenant has a better right to a slot than its holder. */
  #expectPolicy(): void {
    const waiting = this.requests.flatMap(({ all }) =>
      all.filter((run) => run.done < run.length && !this.holders.includes(run)),
    );
    if (waiting.length > 0) expect(this.holders.length).toBe(this.slots);
    const held = (flex: boolean) => this.holders.filter(({ request }) => request.flex === flex);
    if (waiting.some(({ request }) => !request.flex)) expect(held(true).length).toBeLessThanOrEqual(1);
    for (const flex of [false, true]) {
      const wanting = waiting.filter(({ request }) => request.flex === flex);
      const tenants = new Map(
        [...held(flex), ...wanting].map(({ request }) => [request.tenantId, request.weight]),
      );
      const weights = [...tenants.values()].reduce((sum, weight) => sum + weight, 0);
      const beyondShare = (tenantId: string) =>
        held(flex).filter(({ request }) => request.tenantId === tenantId).length -
        Math.ceil((this.slots * tenants.get(tenantId)!) / weights);
      const isBelow = wanting.some(({ request }) => beyondShare(request.tenantId) < 0);
      if (isBelow) for (const tenant of tenants.keys()) expect(beyondShare(tenant)).toBeLessThanOrEqual(0);
    }
  }

  #start(next: Run): void {
    expect(this.holders).not.toContain(next);
    expect(this.suspended.delete(next)).toBe(next.done > 0);
    const flexNeedsSlot = this.#waitingFlex > 0 && !this.holders.some(({ request }) => request.flex);
    this.overtakenInARow = flexNeedsSlot && !next.request.flex ? this.overtakenInARow + 1 : 0;
    expect(this.overtakenInARow).toBeLessThanOrEqual(1);
    if (next.request.flex) this.#waitingFlex--;
    this.holders.push(next);
  }

  #suspendOne(): boolean {
    const victim = this.queues.victim(this.holders);
    if (victim === null) return false;
    expect(this.holders).toContain(victim);
    this.holders = this.holders.filter((run) => run !== victim);
    this.queues.putBack(victim, victim.length - victim.done);
    if (victim.request.flex) this.#waitingFlex++;
    // One that has not run yet starts anew.
    if (victim.done > 0) this.suspended.add(victim);
    this.suspensions++;
    return true;
  }
}

const lengths = fc.array(fc.integer({ min: 1, max: 30 }), { minLength: 1, maxLength: 12 });
const arrivals = fc.array(
  fc.record({ tenant: fc.constantFrom('a', 'b', 'c', 'd'), flex: fc.boolean(), at: fc.nat(80), lengths }),
  { minLength: 2, maxLength: 24, size: 'max' },
);
const weights = fc.record({
  a: fc.constantFrom(1, 3),
  b: fc.constantFrom(0.3, 1),
  c: fc.constant(1),
  d: fc.constant(1),
});

describe('the queues of both classes', () => {
  it('run every sequence exactly once, keep shares and priorities in every step, and overtake flex once at most', () => {
    let suspensions = 0;
    const property = fc.property(
      arrivals,
      weights,
      fc.integer({ min: 1, max: 7 }),
      (list, weightOf, slots) => {
        const machine = new Machine(slots);
        const requests = list.map((one) => new Runs(one.tenant, one.flex, one.lengths, weightOf[one.tenant]));
        const total = requests.flatMap(({ all }) => all).reduce((sum, { length }) => sum + length, 0);
        let steps = 0;
        for (; steps <= 80 || !machine.queues.isEmpty || machine.holders.length > 0; steps++) {
          for (const [index, { at }] of list.entries()) if (at === steps) machine.push(requests[index]!);
          machine.step();
          // Each step with work runs one sequence at least.
          expect(steps).toBeLessThanOrEqual(80 + total + 1);
        }
        expect(requests.flatMap(({ all }) => all).every(({ done, length }) => done === length)).toBe(true);
        expect(machine.suspended.size).toBe(0);
        suspensions += machine.suspensions;
      },
    );
    fc.assert(property, { numRuns: runs(150) });
    expect(suspensions).toBeGreaterThan(runs(300));
  });

  it('resume the sequence that started first before the others of its tenant and before new ones', () => {
    const machine = new Machine(4);
    const long = new Runs('a', false, [50, 50, 50, 50, 50, 50]);
    machine.push(long);
    machine.step();
    machine.push(new Runs('b', false, [2, 4]));
    machine.step();
    expect(machine.holders.filter(({ request }) => request.tenantId === 'a')).toEqual([
      long.all[2],
      long.all[3],
    ]);
    machine.step();
    machine.step();
    expect(machine.holders).toContain(long.all[0]);
    for (let step = 0; step < 3; step++) machine.step();
    expect(machine.holders).toContain(long.all[1]);
    expect(long.waiting).toBe(2);
  });
});
