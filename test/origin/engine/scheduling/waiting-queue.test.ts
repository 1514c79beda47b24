import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { WaitingQueue } from '../../../../origin/engine/scheduling/waiting-queue.ts';
import { runs } from '../../../support/random.ts';
import { type Item, ReferenceQueue, WaitingItems } from '../support/reference-queue.ts';

const NONE: ReadonlyMap<string, number> = new Map();

/** A request of one sequence. */
const item = (tenantId: string, serial: number, cost = 1, weight = 1) =>
  new WaitingItems(tenantId, weight, serial, [cost]);

/** A queue whose sequences run one after the other. */
class FreeQueue extends WaitingQueue<Item, WaitingItems> {
  constructor(limit: number, slots = 1) {
    super(slots, limit);
  }

  /** @param used of its cost; null = it does not end yet */
  next(used: number | null = Infinity): Item | null {
    const next = this.take([]);
    if (next !== null && used !== null) this.charge(next, Math.max(0, next.cost - used));
    return next;
  }
}

const tenantsOf = (queue: FreeQueue, count: number) =>
  Array.from({ length: count }, () => queue.next()?.request.tenantId);

describe('the waiting queue', () => {
  it('serves waiting tenants in proportion to their weights, to within one sequence each', () => {
    const tenants = fc.array(
      fc.record({ weight: fc.integer({ min: 1, max: 5 }), cost: fc.integer({ min: 1, max: 20 }) }),
      { minLength: 2, maxLength: 4 },
    );
    fc.assert(
      fc.property(tenants, (all) => {
        const queue = new FreeQueue(10_000);
        for (let serial = 0; serial < 400; serial++) {
          all.forEach(({ weight, cost }, index) => {
            queue.push(item(`t${index}`, serial, cost, weight));
          });
        }
        const served = all.map(() => 0);
        for (let taken = 0; taken < 300; taken++) {
          const next = queue.next()!;
          const { tenantId, weight, costs } = next.request;
          served[Number(tenantId.slice(1))]! += costs[0]! / weight;
        }
        const max = Math.max(...all.map(({ weight, cost }) => cost / weight));
        expect(Math.max(...served) - Math.min(...served)).toBeLessThanOrEqual(2 * max);
      }),
    );
  });

  it('serves a new tenant before a long queue, without credit for its absence', () => {
    const queue = new FreeQueue(100);
    for (let serial = 0; serial < 20; serial++) queue.push(item('busy', serial));
    tenantsOf(queue, 5);
    for (let serial = 0; serial < 20; serial++) queue.push(item('late', serial));
    expect(tenantsOf(queue, 10).filter((tenant) => tenant === 'late')).toHaveLength(5);
  });

  it('charges only what was used', () => {
    const queue = new FreeQueue(100);
    queue.push(item('careful', 0, 100));
    for (let serial = 1; serial < 10; serial++) queue.push(item('careful', serial, 10));
    for (let serial = 0; serial < 10; serial++) queue.push(item('other', serial, 10));
    queue.next(5);
    expect(tenantsOf(queue, 4).filter((tenant) => tenant === 'careful')).toHaveLength(2);
  });

  it('charges by weight', () => {
    const queue = new FreeQueue(100);
    queue.push(item('small', 0, 10, 0.1));
    for (let serial = 1; serial < 20; serial++) queue.push(item('small', serial, 1, 0.1));
    for (let serial = 0; serial < 20; serial++) queue.push(item('usual', serial, 10));
    queue.next(1);
    const small = tenantsOf(queue, 10).filter((tenant) => tenant === 'small').length;
    expect(Math.abs(small - 5)).toBeLessThanOrEqual(1);
  });

  it('gives no larger share to a tenant that queues its requests one by one', () => {
    const queue = new FreeQueue(100);
    for (let serial = 0; serial < 40; serial++) queue.push(item('patient', serial));
    let served = 0;
    queue.push(item('one by one', 0));
    for (let taken = 0; taken < 20; taken++) {
      if (queue.next()?.request.tenantId === 'one by one') queue.push(item('one by one', ++served));
    }
    expect(Math.abs(served - 10)).toBeLessThanOrEqual(1);
  });

  it('gives a returning tenant no credit for its absence, whenever it is charged', () => {
    fc.assert(
      fc.property(fc.constantFrom(10, 1000), fc.boolean(), (cost, early) => {
        const queue = new FreeQueue(100);
        queue.push(item('back', 0, cost));
        for (let serial = 0; serial < 40; serial++) queue.push(item('busy', serial, 10));
        const first = queue.next(null)!;
        expect(new Set(tenantsOf(queue, 20))).toEqual(new Set(['busy']));
        if (early) queue.charge(first, cost - 10);
        for (let serial = 1; serial < 20; serial++) queue.push(item('back', serial, 10));
        if (!early) queue.charge(first, cost - 10);
        const back = tenantsOf(queue, 10).filter((tenant) => tenant === 'back').length;
        expect(Math.abs(back - 5)).toBeLessThanOrEqual(1);
      }),
    );
  });

  it('lets a new tenant wait for at most one sequence of a tenant whose sequences used little of their cost', () => {
    const queue = new FreeQueue(100);
    for (let serial = 0; serial < 8; serial++) queue.push(item('busy', serial, 100_000));
    for (let serial = 8; serial < 40; serial++) queue.push(item('busy', serial, 10));
    for (const next of Array.from({ length: 8 }, () => queue.next(null)!)) queue.charge(next, 99_990);
    queue.push(item('late', 0, 10));
    expect(tenantsOf(queue, 2)).toContain('late');
  });

  it('gives a tenant that was passed over no credit, because it held its share', () => {
    const queue = new FreeQueue(100, 4);
    const holders = [0, 1].map((serial) => item('full', serial).all[0]!);
    for (const tenant of ['full', 'served']) {
      for (let serial = 0; serial < 40; serial++) queue.push(item(tenant, serial, 10));
    }
    for (let taken = 0; taken < 20; taken++) {
      const next = queue.take(holders)!;
      expect(next.request.tenantId).toBe('served');
      queue.charge(next, 0);
    }
    const full = tenantsOf(queue, 10).filter((tenant) => tenant === 'full').length;
    expect(Math.abs(full - 5)).toBeLessThanOrEqual(1);
  });

  it.each([
    ['taken', (queue: FreeQueue) => void queue.next()],
    ['removed', (queue: FreeQueue, last: WaitingItems) => queue.remove(last)],
  ])('resets all shares once the last request is %s', (_, leave) => {
    const queue = new FreeQueue(100);
    const last = item('before', 1, 1000);
    queue.push(item('before', 0, 1000));
    queue.push(last);
    queue.next();
    leave(queue, last);
    expect(queue.length).toBe(0);
    for (let serial = 0; serial < 4; serial++) queue.push(item('before', serial));
    for (let serial = 0; serial < 4; serial++) queue.push(item('after', serial));
    expect(tenantsOf(queue, 4).filter((tenant) => tenant === 'before')).toHaveLength(2);
  });
});

describe('room in the waiting queue', () => {
  it('counts a request once, however many sequences it has', () => {
    const queue = new FreeQueue(4);
    queue.push(new WaitingItems('many', 1, 0, Array<number>(256).fill(1)));
    expect(queue.length).toBe(1);
    expect(queue.hasRoom('other', 0, NONE)).toBe(true);
  });

  it('ends at the limit plus the free slots', () => {
    const queue = new FreeQueue(2);
    queue.push(item('a', 0));
    expect(queue.hasRoom('a', 0, NONE)).toBe(true);
    queue.push(item('b', 0));
    expect(queue.hasRoom('c', 0, NONE)).toBe(false);
    const none = new FreeQueue(0);
    expect(none.hasRoom('a', 0, NONE)).toBe(false);
  });

  it('counts requests that are being prepared, unless a free slot waits for them', () => {
    const queue = new FreeQueue(16);
    for (let serial = 0; serial < 4; serial++) queue.push(item('a', serial));
    const preparing = (count: number) => new Map([['a', count]]);
    expect(queue.hasRoom('a', 0, preparing(11))).toBe(true);
    expect(queue.hasRoom('a', 0, preparing(12))).toBe(false);
    expect(queue.hasRoom('a', 2, preparing(13))).toBe(true);
  });

  it('gives a tenant that waits alone the whole limit, and then another a place', () => {
    const queue = new FreeQueue(1024);
    let serial = 0;
    while (queue.hasRoom('alone', 0, NONE)) queue.push(item('alone', serial++));
    expect(queue.length).toBe(1024);
    expect(queue.hasRoom('other', 0, NONE)).toBe(true);
  });

  it('keeps a part for tenants with nothing in it: an equal share of three places per tenant and one', () => {
    const tenants = fc.integer({ min: 1, max: 6 });
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 200 }), tenants, (limit, count) => {
        const queue = new FreeQueue(limit);
        const names = Array.from({ length: count }, (_, index) => `t${index}`);
        const places = Math.floor((4 * limit) / 3);
        for (let serial = 0; serial < limit + 1; serial++) {
          for (const name of names) if (queue.hasRoom(name, 0, NONE)) queue.push(item(name, serial));
        }
        expect(places - queue.length).toBeGreaterThanOrEqual(Math.floor(places / (3 * count + 1)));
        expect(queue.hasRoom('newcomer', 0, NONE)).toBe(queue.length < places);
      }),
    );
  });
});

describe('the waiting queue, against a plain reference', () => {
  const tenant = fc.constantFrom('a', 'b', 'c', 'd');
  const weights = fc.record({
    a: fc.constantFrom(0.1, 1, 3),
    b: fc.constantFrom(1, 2),
    c: fc.constant(1),
    d: fc.constant(1),
  });
  const command = fc.oneof(
    {
      weight: 3,
      arbitrary: fc.record({
        type: fc.constant('arrive' as const),
        tenant,
        costs: fc.array(fc.integer({ min: 1, max: 50 }), { minLength: 1, maxLength: 12 }),
      }),
    },
    {
      weight: 4,
      arbitrary: fc.record({ type: fc.constant('finish' as const), at: fc.nat(), used: fc.nat(50) }),
    },
    { weight: 1, arbitrary: fc.record({ type: fc.constant('abort' as const), at: fc.nat() }) },
    {
      weight: 1,
      arbitrary: fc.record({ type: fc.constant('put back' as const), at: fc.nat(), used: fc.nat(50) }),
    },
  );

  it('takes the same sequences, starves nobody, keeps to the shares and loses nothing on abort', () => {
    let passedOver = 0;
    const run = fc.property(
      fc.array(command, { maxLength: 80, size: 'max' }),
      fc.integer({ min: 1, max: 6 }),
      weights,
      (commands, slots, weightOf) => {
        const queue = new WaitingQueue<Item, WaitingItems>(slots, 1000);
        const reference = new ReferenceQueue();
        const arrived: WaitingItems[] = [];
        const left: Item[] = [];
        let running: Item[] = [];
        const suspended = new Set<Item>();
        const held = () => {
          const counts = new Map<string, number>();
          for (const { request } of running)
            counts.set(request.tenantId, (counts.get(request.tenantId) ?? 0) + 1);
          return counts;
        };
        const end = (sequence: Item, used: number) => {
          running = running.filter((other) => other !== sequence);
          reference.charge(sequence, Math.min(used, sequence.cost));
          queue.charge(sequence, Math.max(0, sequence.cost - used));
        };
        const abort = (request: WaitingItems) => {
          queue.remove(request);
          reference.remove(request);
          for (const sequence of running) if (sequence.request === request) end(sequence, 0);
          for (const sequence of suspended) if (sequence.request === request) suspended.delete(sequence);
          arrived.splice(arrived.indexOf(request), 1);
        };
        const putBack = (sequence: Item, used: number) => {
          running = running.filter((other) => other !== sequence);
          left.splice(left.indexOf(sequence), 1);
          suspended.add(sequence);
          reference.putBack(sequence, Math.min(used, sequence.cost));
          queue.putBack(sequence, Math.max(0, sequence.cost - used));
        };
        const fill = () => {
          while (running.length < slots) {
            const counts = held();
            const waiting = reference.waitingTenants();
            const expected = reference.take(slots, running);
            const taken = queue.take(running);
            expect(taken).toBe(expected);
            // A free slot is taken by any tenant that waits.
            expect(taken === null).toBe(waiting.length === 0);
            if (taken === null) return;
            const sum = waiting.reduce((total, { weight }) => total + weight, 0);
            const share = (slots * taken.request.weight) / sum;
            const own = (counts.get(taken.request.tenantId) ?? 0) + 1;
            expect(own).toBeLessThanOrEqual(Math.ceil(share * (1 + 1e-12)));
            if (waiting.some(({ id, weight }) => (counts.get(id) ?? 0) >= (slots * weight) / sum))
              passedOver++;
            suspended.delete(taken);
            running.push(taken);
            left.push(taken);
          }
        };
        commands.forEach((step, serial) => {
          if (step.type === 'arrive') {
            const request = new WaitingItems(step.tenant, weightOf[step.tenant as 'a'], serial, step.costs);
            arrived.push(request);
            queue.push(request);
            reference.push(request);
          } else if (step.type === 'finish' && running.length > 0) {
            end(running[step.at % running.length]!, step.used);
          } else if (step.type === 'abort' && arrived.length > 0) {
            abort(arrived[step.at % arrived.length]!);
          } else if (step.type === 'put back' && running.length > 0) {
            putBack(running[step.at % running.length]!, step.used);
          }
          fill();
          expect(queue.returned).toBe(suspended.size);
          expect(queue.length).toBe(reference.length);
        });
        // Everything that was not aborted leaves the queue for good once.
        for (; running.length > 0; fill()) end(running[0]!, 1);
        expect(queue.length).toBe(0);
        for (const request of arrived) {
          const own = left.filter((sequence) => sequence.request === request);
          expect(own.map(({ index }) => index).toSorted((a, b) => a - b)).toEqual([...request.costs.keys()]);
        }
      },
    );
    fc.assert(run, { numRuns: runs(500) });
    expect(passedOver).toBeGreaterThan(500);
  });
});
