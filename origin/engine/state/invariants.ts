import type { KvSlots } from '../kv/kv-slots.ts';
import type { PriorityQueues } from '../scheduling/priority-queues.ts';
import type { OpenRequest, QueuedSequence } from '../sequences/open-request.ts';
import type { RunningSet } from './running-set.ts';
import type { SuspendedSet } from './suspended-set.ts';

/** Where all sequences are. */
export interface HeldState {
  readonly kv: KvSlots;
  readonly running: RunningSet;
  readonly suspended: SuspendedSet;
  readonly queues: PriorityQueues<QueuedSequence, OpenRequest>;
  readonly requests: ReadonlyMap<string, OpenRequest>;
}

/**
 * Checks the state between two steps. Every slot is free or used once, every sequence has one state, and
 * every open request has a sequence that can end it.
 *
 * @returns one line per broken rule, without content of requests
 */
export function violations({ kv, running, suspended, queues, requests }: HeldState): string[] {
  const broken: string[] = [];
  const expect = (holds: boolean, rule: string): void => {
    if (!holds) broken.push(rule);
  };
  const sequences = new Map([...requests.values()].map((request) => [request, 0]));
  const count = (request: OpenRequest, by: number): void => {
    expect(sequences.has(request) && !request.closed, 'a sequence belongs to a request that is not open');
    sequences.set(request, (sequences.get(request) ?? 0) + by);
  };

  const used = new Set<number>();
  const use = (slot: number): void => {
    expect(kv.isHeld(slot), `slot ${slot} is used but not held`);
    expect(!used.has(slot), `slot ${slot} is used twice`);
    used.add(slot);
  };
  running.decoding.forEach((sequence, slot) => {
    if (sequence === null) return;
    use(slot);
    count(sequence.request, 1);
    expect(sequence.slot === slot, `the sequence in slot ${slot} has slot number ${sequence.slot}`);
    expect(sequence.finish === null, `the sequence in slot ${slot} has finished`);
    expect(kv.kept(slot) <= sequence.computed, `slot ${slot} keeps more than is computed`);
  });
  for (const prefill of running.prefills) {
    count(prefill.request, prefill.sequences.length);
    expect(prefill.sequences.length > 0, 'a prompt in prefill has no sequence');
    expect(
      !prefill.done || prefill.logits !== null,
      'a prompt is computed but none of its sequences has started',
    );
    if (prefill.slot < 0) continue;
    use(prefill.slot);
    expect(kv.kept(prefill.slot) <= prefill.computed, `slot ${prefill.slot} keeps more than is computed`);
  }

  for (const { request } of suspended.sequences) count(request, 1);
  expect(suspended.holdsItsMemory, 'main memory holds other KV than that of the suspended sequences');
  expect(
    suspended.size === queues.returned,
    `${suspended.size} sequences are suspended, ${queues.returned} wait to continue`,
  );
  expect(kv.held === used.size, `${kv.held} slots are held, ${used.size} are used`);
  const { length } = running.sequences;
  expect(length <= kv.slots, `${length} sequences run in ${kv.slots} slots`);
  let queued = 0;
  for (const [request, started] of sequences) {
    expect(request.unfinished > 0, 'an open request has no unfinished sequence');
    const waiting = request.unfinished - started;
    expect(waiting === request.waiting, `${waiting} sequences should wait, ${request.waiting} do`);
    if (waiting > 0) queued++;
  }
  expect(queued === queues.length, `${queued} requests should be queued, ${queues.length} are`);
  return broken;
}
