import { type Limits, UNLIMITED } from '../../../../shared/tenant.ts';
import type {
  NumberedDecision,
  RegionDecision,
  RegionSync,
  RegionSyncResult,
  ReservationRequest,
} from '../../../../worker/env/limiter-protocol.ts';
import {
  type HomeCallbacks,
  HomeSlices,
  type RegionState,
} from '../../../../worker/limits/objects/home-slices.ts';
import { RegionAdmission } from '../../../../worker/limits/objects/region-admission.ts';
import { renew, reserve, settle } from '../../../../worker/limits/quota/quota.ts';
import { emptyQuota, type Subject, type SubjectState } from '../../../../worker/limits/quota/state.ts';

/**
 * One tenant's home and its regions, with a simulated network that delivers messages late, twice or never. Records the
 * truth about all admitted requests in a list that the implementation cannot see.
 */

export const RESERVATION_TTL_MS = 30_000;

/** The true state of a request. */
export interface Truth {
  readonly id: string;
  readonly key: string;
  readonly at: number;
  readonly reserved: number;
  /** Used tokens; null while it runs. */
  used: number | null;
  /** The region that answered the caller; null = the caller still waits. */
  region: number | null;
  /** When home first heard of it; null = not yet. */
  toldAt: number | null;
}

interface Region {
  admission: RegionAdmission;
  readonly name: string;
  log: NumberedDecision[];
  sequence: number;
  syncs: number;
  waiting: ReservationRequest[];
  sent: { readonly sync: RegionSync; readonly at: number } | null;
  answer: RegionSyncResult | null;
}

export class World {
  now: number;
  readonly quota = emptyQuota();
  readonly truth = new Map<string, Truth>();
  /** Number of written records per request. */
  readonly records = new Map<string, number>();
  readonly refused = new Set<string>();
  readonly regions: Region[];
  /** Called for every admitted request. */
  onAdmitted: (truth: Truth) => void = () => {};
  readonly #limits: Readonly<Record<string, Limits>>;
  readonly #open = new Set<string>();
  readonly #stored = new Map<string, string>();
  /** Changed counters, and the written ones. */
  readonly #touched = new Set<string>();
  readonly #written = new Map<string, string>();
  #home: HomeSlices;
  /** Abandoned syncs that may still arrive at home. */
  #stray: RegionSync[] = [];

  constructor(regions: number, limits: Readonly<Record<string, Limits>>, now: number) {
    this.now = now;
    this.#limits = limits;
    this.#home = this.#loadHome();
    this.regions = Array.from({ length: regions }, (_, index) => ({
      ...{ admission: new RegionAdmission(), name: `region-${index}`, log: [], sequence: 0, syncs: 0 },
      ...{ waiting: [], sent: null, answer: null },
    }));
  }

  #loadHome(): HomeSlices {
    const stored = [...this.#stored].map(([name, text]) => [name, JSON.parse(text) as RegionState] as const);
    return new HomeSlices(this.quota, new Map(stored), this.#callbacks);
  }

  get #callbacks(): HomeCallbacks {
    return {
      isOpen: (id) => this.#open.has(id),
      open: ({ requestId: id }) => {
        this.#open.add(id);
        this.truth.get(id)!.toldAt ??= this.now;
      },
      settle: ({ requestId: id, settlement: { usage } }) => {
        if (!this.#open.delete(id)) return;
        const reservation = settle(this.quota, id, usage.completionTokens);
        this.#touch(reservation?.subjects ?? []);
        this.records.set(id, (this.records.get(id) ?? 0) + 1);
      },
      renew: (id) => renew(this.quota, id, this.now + RESERVATION_TTL_MS),
      reserve: (request, now) => this.#reserve(request, now),
      subjectsOf: ({ keyId }) => this.#subjects(keyId),
      isBlocked: () => false,
      touch: (ids) => this.#touch(ids),
      saveRegion: (name, state) => this.#stored.set(name, JSON.stringify(state)),
    };
  }

  #touch(ids: readonly string[]): void {
    for (const id of ids) this.#touched.add(id);
  }

  /** Writes the changed counters, as the commit after every call does. */
  #write(): void {
    for (const id of this.#touched) this.#written.set(id, JSON.stringify(this.quota.subjects.get(id)));
    this.#touched.clear();
  }

  #subjects(key: string): Subject[] {
    return ['tenant', key].map((id) => ({ id, limits: this.#limits[id] ?? UNLIMITED }));
  }

  #reserve(request: ReservationRequest, now: number) {
    const { requestId: id, keyId, tokens } = request;
    if (this.#open.has(id)) return { admitted: true as const, headers: {} };
    const refusal = reserve(
      this.quota,
      { id, subjects: this.#subjects(keyId), tokens, ttlMs: RESERVATION_TTL_MS },
      now,
    );
    if (refusal) return { admitted: false as const, refusal, headers: {} };
    this.#open.add(id);
    this.#touch(['tenant', keyId]);
    this.#admitted(request, null, now);
    return { admitted: true as const, headers: {} };
  }

  #admitted(
    { requestId: id, keyId: key, tokens }: ReservationRequest,
    region: number | null,
    toldAt: number | null,
  ): void {
    const truth: Truth = { id, key, at: this.now, reserved: tokens, used: null, region, toldAt };
    if (this.truth.has(id)) return;
    this.truth.set(id, truth);
    this.onAdmitted(truth);
  }

  #append(region: Region, decision: RegionDecision): void {
    region.sequence += 1;
    region.log.push({ sequence: region.sequence, decision });
  }

  ask(index: number, id: string, keyId: string, tokens: number): void {
    const region = this.regions[index]!;
    const limits = {
      tenantLimits: this.#limits.tenant ?? UNLIMITED,
      keyLimits: this.#limits[keyId] ?? UNLIMITED,
    };
    const request = {
      requestId: id,
      tenantId: 'tenant',
      keyId,
      model: 'tiny',
      tokens,
      ...limits,
      ttlMs: RESERVATION_TTL_MS,
    };
    if (this.#admitLocally(index, request)) return;
    region.waiting.push(request);
    const truth = this.truth.get(id);
    if (truth) truth.region = null;
  }

  #admitLocally(index: number, request: ReservationRequest): boolean {
    const region = this.regions[index]!;
    const admitted = region.admission.admit(request, this.now);
    if (admitted?.decision) {
      this.#append(region, admitted.decision);
      this.#admitted(request, index, null);
    }
    const truth = this.truth.get(request.requestId);
    if (admitted?.result.admitted && truth) truth.region = index;
    return admitted?.result.admitted === true;
  }

  settle(id: string, used: number): void {
    const truth = this.truth.get(id);
    if (!truth || truth.region === null || truth.used !== null) return;
    const region = this.regions[truth.region]!;
    // The caller has repeated the request and waits for the other answer.
    const pending = [...region.waiting, ...(region.sent?.sync.requests ?? [])];
    if (pending.some(({ requestId }) => requestId === id)) return;
    truth.used = used;
    this.#sendSettlement(region, id, used);
  }

  /** Repeats a settlement that was not confirmed. */
  settleAgain(id: string): void {
    const { used, region } = this.truth.get(id) ?? {};
    if (typeof used === 'number' && typeof region === 'number')
      this.#sendSettlement(this.regions[region]!, id, used);
  }

  #sendSettlement(region: Region, id: string, used: number): void {
    const usage = { promptTokens: 0, cachedTokens: 0, completionTokens: used };
    const rest = { errorCode: null, finishReasons: [], upstream: null, latencyMs: 0, firstTokenMs: null };
    this.#append(
      region,
      region.admission.settle(
        { requestId: id, settlement: { status: 'completed', usage, ...rest } },
        this.now,
      ),
    );
  }

  send(index: number): void {
    const region = this.regions[index]!;
    if (region.sent) return;
    region.syncs += 1;
    const requests = region.waiting.filter((request) => !this.#admitLocally(index, request));
    region.waiting = [];
    const told = { region: region.name, number: region.syncs, decisions: [...region.log] };
    const sync = { ...told, ...region.admission.composeSync(requests, this.now) };
    region.sent = { sync, at: this.now };
  }

  /** Home applies the sync. */
  deliver(index: number): void {
    const region = this.regions[index]!;
    if (!region.sent || region.answer) return;
    region.answer = this.#home.sync(structuredClone(region.sent.sync), this.now);
    this.#write();
  }

  /** The region reads the result. */
  receive(index: number): void {
    const region = this.regions[index]!;
    const { sent, answer } = region;
    if (!sent || !answer) return;
    region.sent = null;
    region.answer = null;
    region.log = region.log.filter(({ sequence }) => sequence > answer.cursor);
    region.admission.takeSlices(answer, sent.at);
    for (const [at, { requestId }] of sent.sync.requests.entries()) {
      if (answer.reservations[at]!.admitted) this.truth.get(requestId)!.region = index;
      else this.refused.add(requestId);
    }
  }

  talk(index: number): void {
    this.send(index);
    this.deliver(index);
    this.receive(index);
  }

  /** Breaks the connection, before or after home has applied the sync. The sync may still arrive. */
  lose(index: number): void {
    const region = this.regions[index]!;
    if (!region.sent) return;
    this.#stray.push(region.sent.sync);
    const { requests } = region.sent.sync;
    region.sent = null;
    region.answer = null;
    // Their callers retry.
    for (const { requestId, keyId, tokens } of requests) this.ask(index, requestId, keyId, tokens);
  }

  deliverStray(): void {
    const sync = this.#stray.shift();
    if (sync) this.#home.sync(structuredClone(sync), this.now);
    this.#write();
  }

  /** Restarts a region's object. Only its log survives. */
  crash(index: number): void {
    const region = this.regions[index]!;
    this.lose(index);
    region.admission = new RegionAdmission();
    const lost = region.waiting;
    region.waiting = [];
    for (const { requestId, keyId, tokens } of lost) this.ask(index, requestId, keyId, tokens);
  }

  /** Restarts home's object. Only written state survives. */
  crashHome(): void {
    this.quota.subjects.clear();
    for (const [id, text] of this.#written) this.quota.subjects.set(id, JSON.parse(text) as SubjectState);
    this.#home = this.#loadHome();
  }

  pass(ms: number): void {
    this.now += ms;
    this.#home.endDue(this.now);
    this.#write();
  }

  /** Returns the names of the regions that hold slices. */
  holders(): string[] {
    return this.#home.holders();
  }

  /** Returns when the next slice ends. */
  nextEnd(): number | null {
    return this.#home.nextEnd();
  }

  /** Renews a running request. */
  renew(index: number, id: string): void {
    const usage = { promptTokens: 0, cachedTokens: 0, completionTokens: 1 };
    this.regions[index]!.admission.renew(id, { ttlMs: RESERVATION_TTL_MS, usage, upstream: null });
  }

  /** Drops all old syncs. */
  forgetStrays(): void {
    this.#stray = [];
  }
}
