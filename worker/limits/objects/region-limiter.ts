import { DurableObject } from 'cloudflare:workers';
import type { Env } from '../../env.ts';
import type { Ending, Inquiry, Progress, Reservation, ReservationRequest } from '../protocol.ts';
import { AlarmClock } from './alarm-clock.ts';
import type { Exchange } from './exchange.ts';
import { RegionBook } from './region-admission.ts';
import { RegionJournal } from './region-journal.ts';
import type { TenantLimiter } from './tenant-limiter.ts';

/** What was decided here waits so long for more before home is told. */
const TELL_DELAY_MS = 200;
/** Should the object lose its memory, its alarm tells home. */
const RETRY_MS = 1000;

interface Waiting {
  readonly request: ReservationRequest;
  resolve(reservation: Reservation): void;
  reject(reason: unknown): void;
}

/**
 * One per tenant and region, near its callers: admits from slices of the tenant's budget without asking the tenant's
 * limiter, its home, and tells it afterwards. What no slice pays for, home decides.
 */
export class RegionLimiter extends DurableObject<Env> {
  readonly #journal: RegionJournal;
  readonly #book = new RegionBook();
  readonly #clock: AlarmClock;
  #tenant: string | null;
  readonly #waiting: Waiting[] = [];
  #exchanging: Promise<void> | null = null;
  #next: Promise<void> | null = null;
  #telling = false;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    this.#journal = new RegionJournal(ctx.storage.sql);
    this.#clock = new AlarmClock(ctx.storage);
    this.#tenant = this.#journal.tenant();
  }

  /** As the tenant's limiter does: takes what the request needs, or nothing. */
  async reserve(request: ReservationRequest, endings: readonly Ending[]): Promise<Reservation> {
    this.#belongTo(request.tenantId);
    this.#end(endings);
    const reservation = this.#admit(request);
    if (!reservation) return this.#ask(request);
    await this.#tellSoon();
    return reservation;
  }

  /** How the limits stand, by the key's slice or else by home; changes nothing. */
  async standing(inquiry: Inquiry): Promise<Record<string, string>> {
    const here = this.#book.standing(inquiry.keyId, this.#clock.now());
    return here ?? (await this.#home(inquiry.tenantId).standing(inquiry));
  }

  /** A sign of life; it reaches home with the next exchange. */
  async renew(requestId: string, progress: Progress): Promise<void> {
    this.#book.renew(requestId, progress);
    await this.#tellSoon();
  }

  /** Ends requests. What is told here, home learns exactly once. */
  async settle(endings: readonly Ending[]): Promise<void> {
    this.#end(endings);
    await this.#tellSoon();
  }

  /** Home has blocked somebody: no slice is worth anything any more. */
  async recall(): Promise<void> {
    this.#book.recall();
    await this.#tellSoon();
  }

  override async alarm(): Promise<void> {
    this.#clock.rang();
    if (this.#tenant !== null) await this.#exchange();
    await this.#scheduleAlarm();
  }

  #home(tenant: string): DurableObjectStub<TenantLimiter> {
    const { LIMITER } = this.env;
    return LIMITER.get(LIMITER.idFromName(tenant));
  }

  #belongTo(tenant: string): void {
    if (this.#tenant !== null) return;
    this.#journal.belongTo(tenant);
    this.#tenant = tenant;
  }

  #end(endings: readonly Ending[]): void {
    const now = this.#clock.now();
    for (const ending of endings) this.#journal.append(this.#book.settle(ending, now));
  }

  #admit(request: ReservationRequest): Reservation | null {
    const admitted = this.#book.admit(request, this.#clock.now());
    if (admitted?.entry) this.#journal.append(admitted.entry);
    return admitted?.reservation ?? null;
  }

  /** Home is told in a moment; should this object be gone by then, by alarm. */
  async #tellSoon(): Promise<void> {
    if (!this.#telling) {
      this.#telling = true;
      const tell = scheduler.wait(TELL_DELAY_MS).then(() => {
        this.#telling = false;
        return this.#exchange();
      });
      this.ctx.waitUntil(tell);
    }
    await this.#clock.ringBy(this.#clock.now() + RETRY_MS);
  }

  #ask(request: ReservationRequest): Promise<Reservation> {
    const { promise, resolve, reject } = Promise.withResolvers<Reservation>();
    this.#waiting.push({ request, resolve, reject });
    this.ctx.waitUntil(this.#exchange());
    return promise;
  }

  /** One at a time; all who come meanwhile go with the next. */
  #exchange(): Promise<void> {
    if (!this.#exchanging) {
      this.#exchanging = this.#talk().finally(() => {
        this.#exchanging = null;
      });
      return this.#exchanging;
    }
    this.#next ??= this.#exchanging.finally(() => {
      this.#next = null;
      return this.#exchange();
    });
    return this.#next;
  }

  async #talk(): Promise<void> {
    // For some a slice has come meanwhile.
    const waiting = this.#waiting.splice(0).filter(({ request, resolve }) => {
      const reservation = this.#admit(request);
      if (reservation) resolve(reservation);
      return !reservation;
    });
    const sentAt = this.#clock.now();
    try {
      const exchange: Exchange = {
        region: this.ctx.id.toString(),
        number: this.#journal.nextExchange(),
        entries: this.#journal.entries(),
        ...this.#book.compose(
          waiting.map(({ request }) => request),
          sentAt,
        ),
      };
      const answer = await this.#home(this.#tenant!).exchange(exchange);
      if (!answer) throw new Error('A later exchange has arrived before this one.');
      this.#journal.dropTo(answer.cursor);
      // An old slice should not lie idle until the next request.
      if (this.#book.absorb(answer, sentAt)) await this.#tellSoon();
      for (const [index, { resolve }] of waiting.entries()) resolve(answer.reservations[index]!);
    } catch (thrown) {
      for (const { reject } of waiting) reject(thrown);
    }
    await this.#scheduleAlarm();
  }

  /** For what home does not know yet, and for slices that are over. */
  #scheduleAlarm(): Promise<void> {
    const retryAt = this.#journal.isEmpty() ? null : this.#clock.now() + RETRY_MS;
    return this.#clock.ringBy(retryAt, this.#book.nextExpiry());
  }
}
