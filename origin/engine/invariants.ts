import type { Roster } from './running-set.ts';

/**
 * What must hold between two steps, whatever has happened: every slot is used once or free, nobody is in two places,
 * no request is open without a sequence that can end it.
 * @returns one line per broken rule, without any content of a request
 */
export function violations(roster: Roster): string[] {
  const broken: string[] = [];
  const expect = (holds: boolean, rule: string): void => {
    if (!holds) broken.push(rule);
  };
  const { kv, decoding, prefills, requests } = roster;
  const sequences = new Map([...requests.values()].map((request) => [request, 0]));
  const count = (request: (typeof prefills)[number]['request'], by: number): void => {
    expect(sequences.has(request) && !request.closed, 'a sequence belongs to a request that is not open');
    sequences.set(request, (sequences.get(request) ?? 0) + by);
  };

  const seated = new Set<number>();
  const sit = (slot: number): void => {
    expect(kv.isHeld(slot), `slot ${slot} is used but not held`);
    expect(!seated.has(slot), `slot ${slot} is used twice`);
    seated.add(slot);
  };
  decoding.forEach((sequence, slot) => {
    if (sequence === null) return;
    sit(slot);
    count(sequence.request, 1);
    expect(sequence.slot === slot, `the sequence in slot ${slot} believes to be in ${sequence.slot}`);
    expect(!sequence.finished, `the sequence in slot ${slot} has finished`);
    expect(kv.kept(slot) <= sequence.computed, `slot ${slot} keeps more than is computed`);
  });
  for (const prefill of prefills) {
    count(prefill.request, prefill.sequences.length);
    expect(prefill.sequences.length > 0, 'a prompt is computed for nobody');
    expect(!prefill.done, 'a prompt is computed but its sequences have not started');
    if (prefill.slot < 0) continue;
    sit(prefill.slot);
    expect(kv.kept(prefill.slot) <= prefill.computed, `slot ${prefill.slot} keeps more than is computed`);
  }

  expect(kv.held === seated.size, `${kv.held} slots are held, ${seated.size} are used`);
  expect(roster.admitted <= kv.slots, `${roster.admitted} sequences have a place, there are ${kv.slots}`);
  expect(roster.waiting >= 0, 'the queue has a negative length');
  let waiting = 0;
  for (const [request, placed] of sequences) {
    expect(request.unfinished > 0, 'an open request has nothing left to do');
    expect(request.unfinished >= placed, 'a request has more sequences than are unfinished');
    waiting += request.unfinished - placed;
  }
  expect(waiting === roster.waiting, `${waiting} sequences should wait, ${roster.waiting} do`);
  return broken;
}
