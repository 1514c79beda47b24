import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { WaitingQueue } from '../../../origin/engine/waiting-queue.ts';

interface Item {
  readonly tenantId: string;
  readonly weight: number;
  readonly cost: number;
  readonly serial: number;
}

const item = (tenantId: string, serial: number, cost = 1, weight = 1): Item => ({
  tenantId,
  weight,
  cost,
  serial,
});

const NONE_RESERVED: ReadonlyMap<string, number> = new Map();

describe('the waiting queue', () => {
  it('returns every item once, in order within a tenant', () => {
    const command = fc.oneof(
      fc.record({
        type: fc.constant('push' as const),
        tenant: fc.constantFrom('a', 'b', 'c'),
        cost: fc.nat(50),
      }),
      fc.record({ type: fc.constant('take' as const) }),
      fc.record({
        type: fc.constant('remove' as const),
        tenant: fc.constantFrom('a', 'b', 'c'),
        odd: fc.nat(1),
      }),
    );
    fc.assert(
      fc.property(fc.array(command, { maxLength: 60 }), (commands) => {
        const queue = new WaitingQueue<Item>(1000);
        let model: Item[] = [];
        commands.forEach((step, serial) => {
          if (step.type === 'push') {
            const next = item(step.tenant, serial, step.cost);
            queue.push(next);
            model.push(next);
          } else if (step.type === 'take') {
            const taken = queue.take();
            expect(taken === null).toBe(model.length === 0);
            expect(taken).toBe(model.find(({ tenantId }) => tenantId === taken?.tenantId) ?? null);
            model = model.filter((other) => other !== taken);
          } else {
            const matches = (other: Item) => other.tenantId === step.tenant && other.serial % 2 === step.odd;
            expect(queue.remove(step.tenant, matches)).toBe(model.filter(matches).length);
            model = model.filter((other) => !matches(other));
          }
          expect(queue.length).toBe(model.length);
        });
      }),
    );
  });

  it('serves waiting tenants in proportion to their weights, to within one item each', () => {
    fc.assert(
      fc.property(
        fc.array(
          fc.record({ weight: fc.integer({ min: 1, max: 5 }), cost: fc.integer({ min: 1, max: 20 }) }),
          {
            minLength: 2,
            maxLength: 4,
          },
        ),
        (tenants) => {
          const queue = new WaitingQueue<Item>(10_000);
          for (let serial = 0; serial < 400; serial++) {
            tenants.forEach(({ weight, cost }, index) => {
              queue.push(item(`t${index}`, serial, cost, weight));
            });
          }
          const served = tenants.map(() => 0);
          for (let taken = 0; taken < 300; taken++) {
            const next = queue.take();
            const index = Number(next?.tenantId.slice(1));
            served[index]! += next!.cost / next!.weight;
          }
          const max = Math.max(...tenants.map(({ weight, cost }) => cost / weight));
          expect(Math.max(...served) - Math.min(...served)).toBeLessThanOrEqual(2 * max);
        },
      ),
    );
  });

  it('serves a new tenant before a long queue, without credit for its absence', () => {
    const queue = new WaitingQueue<Item>(100);
    for (let serial = 0; serial < 20; serial++) queue.push(item('busy', serial));
    for (let taken = 0; taken < 5; taken++) queue.take();
    for (let serial = 0; serial < 20; serial++) queue.push(item('late', serial));
    const next = Array.from({ length: 10 }, () => queue.take()?.tenantId);
    expect(next.filter((tenant) => tenant === 'late')).toHaveLength(5);
  });

  it('charges only what was used, after the refund', () => {
    const queue = new WaitingQueue<Item>(100);
    const greedy = item('careful', 0, 100);
    queue.push(greedy);
    for (let serial = 1; serial < 10; serial++) queue.push(item('careful', serial, 10));
    for (let serial = 0; serial < 10; serial++) queue.push(item('other', serial, 10));
    expect(queue.take()).toBe(greedy);
    queue.refund(greedy, 95);
    const next = Array.from({ length: 4 }, () => queue.take()?.tenantId);
    expect(next.filter((tenant) => tenant === 'careful')).toHaveLength(2);
  });

  it('refunds by weight, as it charges', () => {
    const queue = new WaitingQueue<Item>(100);
    const first = item('small', 0, 10, 0.1);
    queue.push(first);
    for (let serial = 1; serial < 20; serial++) queue.push(item('small', serial, 1, 0.1));
    for (let serial = 0; serial < 20; serial++) queue.push(item('usual', serial, 10));
    expect(queue.take()).toBe(first);
    queue.refund(first, 9);
    const next = Array.from({ length: 10 }, () => queue.take()?.tenantId);
    expect(Math.abs(next.filter((tenant) => tenant === 'small').length - 5)).toBeLessThanOrEqual(1);
  });

  it('gives no larger share to a tenant that queues its items one by one', () => {
    const queue = new WaitingQueue<Item>(100);
    for (let serial = 0; serial < 40; serial++) queue.push(item('patient', serial));
    let served = 0;
    queue.push(item('one by one', 0));
    for (let taken = 0; taken < 20; taken++) {
      if (queue.take()?.tenantId === 'one by one') queue.push(item('one by one', ++served));
    }
    expect(Math.abs(served - 10)).toBeLessThanOrEqual(1);
  });

  it('gives a returning tenant no credit for its absence, whenever it gets a refund', () => {
    fc.assert(
      fc.property(fc.constantFrom(10, 1000), fc.boolean(), (cost, early) => {
        const queue = new WaitingQueue<Item>(100);
        const first = item('back', 0, cost);
        queue.push(first);
        for (let serial = 0; serial < 40; serial++) queue.push(item('busy', serial, 10));
        expect(queue.take()).toBe(first);
        for (let taken = 0; taken < 20; taken++) expect(queue.take()?.tenantId).toBe('busy');
        if (early) queue.refund(first, cost - 10);
        for (let serial = 1; serial < 20; serial++) queue.push(item('back', serial, 10));
        if (!early) queue.refund(first, cost - 10);
        const next = Array.from({ length: 10 }, () => queue.take()?.tenantId);
        expect(Math.abs(next.filter((tenant) => tenant === 'back').length - 5)).toBeLessThanOrEqual(1);
      }),
    );
  });

  it('lets a new tenant wait for at most one item of a tenant that was charged too much', () => {
    const queue = new WaitingQueue<Item>(100);
    const long = Array.from({ length: 8 }, (_, serial) => item('busy', serial, 100_000));
    for (const next of long) queue.push(next);
    for (let serial = 8; serial < 40; serial++) queue.push(item('busy', serial, 10));
    for (const next of long) expect(queue.take()).toBe(next);
    for (const next of long) queue.refund(next, 99_990);
    queue.push(item('late', 0, 10));
    expect([queue.take()?.tenantId, queue.take()?.tenantId]).toContain('late');
  });

  it.each([
    ['taken', (queue: WaitingQueue<Item>) => queue.take()],
    ['removed', (queue: WaitingQueue<Item>) => queue.remove('before', () => true)],
  ])('resets all shares once the last item is %s', (_, leave) => {
    const queue = new WaitingQueue<Item>(100);
    for (let serial = 0; serial < 2; serial++) queue.push(item('before', serial, 1000));
    queue.take();
    leave(queue);
    expect(queue.length).toBe(0);
    for (let serial = 0; serial < 4; serial++) queue.push(item('before', serial));
    for (let serial = 0; serial < 4; serial++) queue.push(item('after', serial));
    const next = Array.from({ length: 4 }, () => queue.take()?.tenantId);
    expect(next.filter((tenant) => tenant === 'before')).toHaveLength(2);
  });

  it('counts tenants with reserved items when it divides the last quarter', () => {
    const queue = new WaitingQueue<Item>(16);
    for (let serial = 0; serial < 4; serial++) queue.push(item('a', serial));
    const reserved = (others: readonly string[]) => new Map(others.map((tenant) => [tenant, 1]));
    expect(queue.hasRoom('a', 1, -8, reserved(['a']))).toBe(true);
    expect(queue.hasRoom('a', 1, -8, reserved(['b', 'c', 'd']))).toBe(false);
  });

  it('has room up to its limit plus the free slots, and takes any request if empty', () => {
    const queue = new WaitingQueue<Item>(2);
    expect(queue.hasRoom('a', 50, 0, NONE_RESERVED)).toBe(true);
    queue.push(item('a', 0));
    expect(queue.hasRoom('a', 1, 0, NONE_RESERVED)).toBe(true);
    expect(queue.hasRoom('a', 2, 0, NONE_RESERVED)).toBe(false);
    expect(queue.hasRoom('a', 2, 1, NONE_RESERVED)).toBe(true);
    const none = new WaitingQueue<Item>(0);
    expect(none.hasRoom('a', 1, 1, NONE_RESERVED)).toBe(true);
    expect(none.hasRoom('a', 1, 0, NONE_RESERVED)).toBe(false);
  });

  it('never exceeds its limit, and keeps room for new tenants from those with more than an equal share', () => {
    const steps = fc.array(fc.constantFrom('a', 'a', 'a', 'b', 'c', 'd', null, null), {
      maxLength: 60,
      size: 'max',
    });
    fc.assert(
      fc.property(fc.constantFrom(4, 16), steps, (limit, all) => {
        const queue = new WaitingQueue<Item>(limit);
        const waiting: string[] = [];
        all.forEach((tenant, serial) => {
          if (tenant === null) {
            const taken = queue.take();
            if (taken) waiting.splice(waiting.indexOf(taken.tenantId), 1);
            return;
          }
          const own = waiting.filter((other) => other === tenant).length;
          const sharing = new Set([...waiting, tenant]).size + 1;
          const fair = own + 1 <= Math.max(1, limit / sharing);
          const last = waiting.length >= 0.75 * limit;
          const room = queue.hasRoom(tenant, 1, 0, NONE_RESERVED);
          expect(room).toBe(waiting.length < limit && (!last || fair));
          if (room) {
            queue.push(item(tenant, serial));
            waiting.push(tenant);
          }
          expect(queue.length).toBe(waiting.length);
          expect(queue.hasRoom('newcomer', 1, 0, NONE_RESERVED)).toBe(queue.length < limit);
        });
      }),
      { numRuns: 1000 },
    );
  });
});
