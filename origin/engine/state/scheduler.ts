import type { KvSlots } from '../kv/kv-slots.ts';
import { type KvCopy, MAX_COPIED_CHUNKS } from '../kv/pending-copies.ts';
import type { PrefixStore } from '../kv/prefix-store.ts';
import type { SlotStates } from '../kv/state-snapshots.ts';
import type { EngineStatus, Submission } from '../messages.ts';
import { PriorityQueues } from '../scheduling/priority-queues.ts';
import { type OpenRequest, type QueuedSequence, sequenceCount } from '../sequences/open-request.ts';
import type { Sequence } from '../sequences/sequence.ts';
import type { HeldState } from './invariants.ts';
import type { PrefixCache } from './prefix-cache.ts';
import type { RunningSet } from './running-set.ts';
import { KvMoveFailure, SuspendedSet } from './suspended-set.ts';

interface SchedulerOptions {
  readonly kv: KvSlots;
  /** Memory for suspended sequences; null = none is suspended. */
  readonly store: PrefixStore | null;
  /** Null = slots are their KV. */
  readonly states?: SlotStates | null;
  readonly prefixes: PrefixCache;
  readonly running: RunningSet;
  /** Requests that may wait for a slot. */
  readonly maxWaiting: number;
  /** Positions of a prefill chunk. */
  readonly chunk: number;
}

/**
 * Holds the open requests, and gives slots to their sequences. A sequence waits, then runs until it ends or
 * is suspended for one that comes first; a suspended one waits again.
 */
export class Scheduler {
  readonly #options: SchedulerOptions;
  readonly #requests = new Map<string, OpenRequest>();
  readonly #queues: PriorityQueues<QueuedSequence, OpenRequest>;
  readonly #suspended: SuspendedSet;

  constructor(options: SchedulerOptions) {
    const { kv, store, states = null, maxWaiting } = options;
    this.#options = options;
    this.#queues = new PriorityQueues(kv.slots, maxWaiting);
    this.#suspended = new SuspendedSet(kv, store, states);
  }

  /** Open requests by id. */
  get requests(): ReadonlyMap<string, OpenRequest> {
    return this.#requests;
  }

  get status(): Pick<EngineStatus, 'running' | 'waiting' | 'suspended' | 'suspensions'> {
    let waiting = 0;
    for (const request of this.#requests.values()) waiting += request.waiting;
    const { size: suspended, suspensions } = this.#suspended;
    return { running: this.#running, waiting, suspended, suspensions };
  }

  /** What the invariants are about. */
  get state(): HeldState {
    const { kv, running } = this.#options;
    return { kv, running, requests: this.#requests, queues: this.#queues, suspended: this.#suspended };
  }

  get hasFreeSlot(): boolean {
    return this.#queues.isEmpty && this.#running < this.#slots;
  }

  get #running(): number {
    return this.#options.running.size;
  }

  get #holders(): QueuedSequence[] {
    return this.#options.running.sequences;
  }

  get #slots(): number {
    return this.#options.kv.slots;
  }

  /** @param preparing by tenant, requests of the same class that have been admitted and not opened */
  hasRoom(submission: Submission, preparing: ReadonlyMap<string, number>): boolean {
    const holders = this.#holders;
    const flex = holders.filter(({ request }) => request.flex).length;
    const suspendable = submission.flex || this.#options.store === null ? 0 : Math.max(0, flex - 1);
    const free = this.#slots - holders.length + suspendable;
    return this.#queues.hasRoom(submission, sequenceCount(submission), free, preparing);
  }

  /** Adds a request and queues it. */
  open(request: OpenRequest): void {
    this.#requests.set(request.submission.requestId, request);
    this.#queues.push(request);
    // Suspended sequences come first, and their KV must not be moved during a run.
    while (this.#suspended.size === 0 && this.#running < this.#slots) {
      const next = this.#queues.take(this.#holders);
      if (next === null) return;
      this.#options.running.add(next, null);
    }
  }

  /**
   * Makes pieces of long copies, gives slots to waiting sequences, and suspends running ones for those that
   * come first. Not during a run. A call moves the KV of MAX_COPIED_CHUNKS twice, and of two more sequences
   * at most. The rest waits for the next one.
   * @param copy makes KV copies at once
   * @param onMove called when KV of a sequence has been copied, or written back, with its request
   * @param onFault called if the KV of a sequence could not be moved; its request is lost, unless null
   */
  admit(
    copy: (copies: readonly KvCopy[]) => void,
    onMove: (request: OpenRequest) => void,
    onFault: (cause: unknown, lost: OpenRequest | null) => void,
  ): void {
    const { kv, running, chunk } = this.#options;
    const pieces = kv.pieces();
    copy(pieces);
    const target = pieces[0] && running.inSlot(pieces[0].to);
    if (target) onMove(target.request);
    const enough = this.#suspended.movedPositions + MAX_COPIED_CHUNKS * chunk;
    // A tenant whose requests differ in weight could otherwise take a slot from itself for ever.
    for (let moves = 0; moves < 2 * this.#slots && !this.#queues.isEmpty; moves++) {
      if (this.#suspended.movedPositions >= enough) return;
      let next: QueuedSequence | null = null;
      try {
        if (this.#running === this.#slots && !this.#suspendOne()) return;
        next = this.#queues.take(this.#holders);
        if (next === null) return;
        const suspended = this.#suspended.size;
        running.add(next, this.#suspended.take(next, copy) ?? null);
        if (this.#suspended.size < suspended) onMove(next.request);
      } catch (error) {
        if (!(error instanceof KvMoveFailure)) throw error;
        onFault(error.cause, next?.request ?? null);
        if (next === null) return;
      }
    }
  }

  /** Suspends the sequence that should give up its slot. False if there is none, or no memory. */
  #suspendOne(): boolean {
    const victim = this.#queues.victim(this.#holders);
    if (victim === null) return false;
    const left = this.#options.running.suspend(victim, (queued, state) => this.#suspended.add(queued, state));
    if (left === null) return false;
    this.#queues.putBack(left.queued, left.cost);
    return true;
  }

  /** Whether a request just opened computes a short prompt in the next step, if no run is going on. */
  isShortNext(request: OpenRequest): boolean {
    const { running, store, chunk } = this.#options;
    if (running.work.get(request.account)?.prompts === 'short') return true;
    return store !== null && request.isShort(0, 0, chunk) && this.#queues.isNext(request, this.#holders);
  }

  /** Frees the slot of a finished sequence. */
  finish(sequence: Sequence): void {
    this.#options.running.finish(sequence);
    this.#queues.charge(sequence.queued, sequence.remaining);
  }

  /**
   * Removes a request with all its sequences.
   * @param reusable false if a run failed with its slots, so that their KV cannot be trusted
   */
  close(request: OpenRequest, reusable: boolean): void {
    const { prefixes, running } = this.#options;
    request.close();
    this.#requests.delete(request.submission.requestId);
    if (!reusable) prefixes.drop(request);
    this.#queues.remove(request);
    this.#suspended.remove(request);
    for (const { queued, cost } of running.close(request, reusable)) this.#queues.charge(queued, cost);
  }
}
