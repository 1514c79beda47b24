import { errorMessage } from '@continuo/shared/error-details.ts';
import type { EngineStatus } from '../engine/messages.ts';
import { EngineStartError } from '../engine/thread/engine-client.ts';
import type { Logger } from '../process/log.ts';
import type { Phase } from './engines.ts';
import { type FaultyModel, faultError, type InspectedModel, type Inspection } from './inspect-model.ts';
import type { ServedSet } from './inspect-models.ts';
import { LifeCycle, type RequestDecision } from './life-cycle.ts';
import type { LoadedModel } from './load-model.ts';
import { limitOf, type MemoryLimits, memoryOf, modelBytes } from './memory-budget.ts';

interface FleetOptions {
  /** Loads a model. @throws Error with one clear line */
  readonly load: (model: InspectedModel) => Promise<LoadedModel>;
  /** Monotonic milliseconds. */
  readonly now: () => number;
  readonly log: Logger;
  /** Called with one line if a load finds that this process can no longer use the device. */
  readonly onDeviceLost?: (reason: string) => void;
}

/** One configured model and its state. */
export interface FleetModel {
  readonly model: InspectedModel;
  readonly phase: Phase;
  /** Its engine, once loaded. */
  readonly loaded: LoadedModel | null;
  /** Why the last load failed, until one succeeds; else why the last failed run of its engine failed. */
  readonly reason: string | null;
}

/** A model in use. It stays loaded until `release`. */
interface Hold {
  readonly loaded: LoadedModel;
  release(): void;
}

export type Refusal = Exclude<RequestDecision, { readonly type: 'serve' }>;

/** Longest delay that a timer accepts. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** The models of one origin: executes the decisions of their life cycle and reports the results. */
export class Fleet {
  readonly #options: FleetOptions;
  readonly #life: LifeCycle;
  readonly #loaded = new Map<number, LoadedModel>();
  #models: ReadonlyMap<string, InspectedModel> = new Map();
  #faulty: readonly FaultyModel[] = [];
  #idleTimer: NodeJS.Timeout | null = null;
  /** Models whose first load the origin waits for before it is ready; null = not configured yet. */
  #starting: Set<string> | null = null;
  /** By model: why it cannot be served. The first one is the first that was found. */
  readonly #faults = new Map<string, FaultyModel>();
  readonly #started = Promise.withResolvers<void>();

  constructor(options: FleetOptions) {
    this.#options = options;
    this.#life = new LifeCycle({
      load: (engine) => void this.#load(engine),
      unload: (engine) => void this.#unload(engine),
    });
    // A failed start must not become an unhandled rejection if no caller awaits it.
    this.#started.promise.catch(() => undefined);
  }

  /**
   * Applies a configuration whose models fit together. A faulty model is listed, and every request for it is
   * refused.
   */
  configure({ models, faulty, cards }: Inspection, limits: MemoryLimits): void {
    this.#faults.clear();
    for (const fault of faulty) this.#reportFault(fault, true);
    this.#faulty = faulty;
    this.#models = new Map(models.map((model) => [model.settings.name, model]));
    const specs = models.map((model) => ({
      name: model.settings.name,
      key: model.key,
      memory: memoryOf(model),
      bytes: modelBytes(model),
      loadAtStart: model.settings.load === 'start',
      idleMs: model.settings.idleMs,
      expectedLoadMs: expectedLoadMs(model),
    }));
    const atStart = specs.filter(({ loadAtStart }) => loadAtStart).map(({ name }) => name);
    // A model that a reload removes while it loads no longer delays readiness.
    this.#starting = new Set(atStart.filter((name) => this.#starting?.has(name) ?? true));
    this.#life.configure(specs, limitOf(limits, cards), this.#options.now());
    this.#resolveIfStarted();
    this.#scheduleExpiry();
  }

  /** True once every model with `load: start` has been loaded or has failed. */
  get hasStarted(): boolean {
    return this.#starting?.size === 0;
  }

  /** Resolves when the origin has started. @throws Error of the first model if none can be served */
  whenStarted(): Promise<void> {
    return this.#started.promise;
  }

  get models(): readonly FleetModel[] {
    return [...this.#models.values()].map((model) => {
      const { name } = model.settings;
      const { id, phase } = this.#life.current(name)!;
      const loaded = this.#loaded.get(id) ?? null;
      const reason = this.#faults.get(name)?.reason ?? loaded?.engine.lastFault ?? null;
      return { model, phase, loaded, reason };
    });
  }

  /** What a reload must know before it plans models. */
  get served(): ServedSet {
    const held = new Map(this.#life.engines.map(({ memory }) => [memory, this.#life.heldBytes(memory)]));
    return { models: [...this.#models.values()], held: Object.fromEntries(held) };
  }

  /** The status of all engines, retired ones included. */
  get engines(): readonly (EngineStatus & { readonly model: string; readonly slots: number })[] {
    return [...this.#loaded.values()].map(({ model, engine }) => ({
      ...engine.status,
      model: model.id,
      slots: this.#models.get(model.id)?.slots ?? 0,
    }));
  }

  /** Configured models that cannot be served before a reload. */
  get faulty(): readonly FaultyModel[] {
    return this.#faulty;
  }

  serves(name: string): boolean {
    return this.#models.has(name);
  }

  /** Finds a model by name or alias. `default` also means the only model. Returns null if there is none. */
  find(name: string): InspectedModel | FaultyModel | null {
    const models = [...this.#models.values(), ...this.#faulty];
    const named =
      models.find(({ settings }) => settings.name === name) ??
      models.find(({ settings: { aliases } }) => aliases.includes(name));
    if (named !== undefined) return named;
    return name === 'default' && models.length === 1 ? models[0]! : null;
  }

  /** Holds a model for one request, or starts loading it. */
  take(model: InspectedModel | FaultyModel): Hold | Refusal {
    if ('reason' in model) return { type: 'failed', retryAfterMs: null };
    const { name } = model.settings;
    const decision = this.#life.request(name, this.#options.now());
    if (decision.type !== 'serve') return decision;
    let held = true;
    return {
      loaded: this.#loaded.get(decision.engine)!,
      release: () => {
        if (!held) return;
        held = false;
        this.#life.release(decision.engine, this.#options.now());
        this.#scheduleExpiry();
      },
    };
  }

  /** Stops every engine, with or without users. */
  async stop(): Promise<void> {
    if (this.#idleTimer !== null) clearTimeout(this.#idleTimer);
    await Promise.all([...this.#loaded.values()].map(({ engine }) => engine.stop()));
  }

  async #load(id: number): Promise<void> {
    const { now, log } = this.#options;
    const engine = this.#life.engines.find((engine) => engine.id === id)!;
    const { name } = engine;
    const startedAt = now();
    const model = this.#models.get(name)!;
    try {
      const loaded = await this.#options.load(model);
      this.#loaded.set(id, loaded);
      this.#life.loaded(id, now());
      this.#faults.delete(name);
      log.info({ model: name, ms: Math.round(now() - startedAt) }, 'loaded');
    } catch (error) {
      // Errors before the engine starts are faults of the directory's files.
      const permanent = !(error instanceof EngineStartError) || error.permanent;
      this.#life.loadFailed(id, { permanent }, now());
      const reason = errorMessage(error);
      this.#reportFault({ settings: model.settings, reason }, permanent);
      if (error instanceof EngineStartError && error.deviceLost) this.#options.onDeviceLost?.(reason);
    }
    if (!engine.retired) this.#starting?.delete(name);
    this.#resolveIfStarted();
    this.#scheduleExpiry();
  }

  async #unload(id: number): Promise<void> {
    const { model, engine } = this.#loaded.get(id)!;
    this.#loaded.delete(id);
    await Promise.allSettled([engine.stop(), model.encoder.close(), model.tokenizerThreads.close()]);
    this.#options.log.info({ model: model.id }, 'unloaded');
    this.#life.unloaded(id, this.#options.now());
  }

  #reportFault(fault: FaultyModel, permanent: boolean): void {
    const { settings, reason } = fault;
    this.#faults.set(settings.name, fault);
    this.#options.log.error({ model: settings.name, reason, permanent }, 'loading failed');
  }

  #resolveIfStarted(): void {
    if (!this.hasStarted) return;
    const [failure] = this.#faults.values();
    const servesNone = this.models.every(({ phase }) => phase === 'failed');
    if (servesNone && failure !== undefined) this.#started.reject(faultError(failure));
    else this.#started.resolve();
  }

  /** Sets one timer, for the model that expires first. */
  #scheduleExpiry(): void {
    if (this.#idleTimer !== null) clearTimeout(this.#idleTimer);
    const delay = this.#life.nextExpiry - this.#options.now();
    if (delay === Infinity) return;
    const expire = (): void => {
      this.#life.expire(this.#options.now());
      this.#scheduleExpiry();
    };
    this.#idleTimer = setTimeout(expire, Math.min(Math.max(1, Math.ceil(delay)), MAX_TIMER_MS)).unref();
  }
}

const FIXED_LOAD_MS = 2_000;
const BYTES_PER_MS = (200 * 2 ** 20) / 1000;

/** A cautious estimate for a model that was never loaded. */
const expectedLoadMs = ({ weightBytes }: InspectedModel): number =>
  FIXED_LOAD_MS + weightBytes / BYTES_PER_MS;
