import { mayUseWebGpu } from '../config/model-settings.ts';
import type { EngineStatus } from '../engine/messages.ts';
import type { Logger } from '../log.ts';
import type { Phase } from './engine-state.ts';
import { LifeCycle, type Verdict } from './life-cycle.ts';
import { type LoadFault, loadFaultOf } from './load-fault.ts';
import { bytesOf, limitOf, type MemoryLimits, memoryOf } from './memory-budget.ts';
import type { Loaded } from './service.ts';
import type { SurveyedModel } from './survey.ts';

export interface FleetOptions {
  /** Opens a model. @throws Error one clear line */
  readonly load: (model: SurveyedModel) => Promise<Loaded>;
  /** Milliseconds, monotonic. */
  readonly now: () => number;
  readonly log: Logger;
}

/** One configured model and where its life stands. */
export interface FleetModel {
  readonly survey: SurveyedModel;
  readonly phase: Phase;
  /** The engine that takes its requests, once it is loaded. */
  readonly loaded: Loaded | null;
}

/** A model in use; it stays loaded until it is released, once. */
export interface Hold {
  readonly loaded: Loaded;
  release(): void;
}

export type Refusal = Exclude<Verdict, { readonly type: 'serve' }>;

/** Longest delay a timer takes. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** The engines of one origin: does what their life cycle decides, and tells it what came of it. */
export class Fleet {
  readonly #options: FleetOptions;
  readonly #life: LifeCycle;
  readonly #loaded = new Map<number, Loaded>();
  #models: ReadonlyMap<string, SurveyedModel> = new Map();
  /** The one that has used WebGPU in this process, or may have. */
  #onWebGpu: SurveyedModel | null = null;
  #idleTimer: NodeJS.Timeout | null = null;
  /** Models still to be loaded before the origin has started; null = not configured yet. */
  #starting: Set<string> | null = null;
  readonly #started = Promise.withResolvers<void>();

  constructor(options: FleetOptions) {
    this.#options = options;
    this.#life = new LifeCycle({
      load: (engine) => void this.#load(engine),
      unload: (engine) => void this.#unload(engine),
    });
    // Whoever never waits for the start shall not be killed by its failure.
    this.#started.promise.catch(() => undefined);
  }

  /**
   * Takes over a configuration whose models fit together.
   * @throws Error one line, and then nothing has changed, when another engine would use WebGPU
   */
  configure(models: readonly SurveyedModel[], limits: MemoryLimits): void {
    this.#requireSameOnWebGpu(models);
    this.#models = new Map(models.map((model) => [model.settings.name, model]));
    const terms = models.map((model) => ({
      name: model.settings.name,
      key: model.key,
      memory: memoryOf(model),
      bytes: bytesOf(model),
      loadAtStart: model.settings.load === 'start',
      idleMs: model.settings.idleMs,
      expectedLoadMs: expectedLoadMs(model),
    }));
    const atStart = terms.filter(({ loadAtStart }) => loadAtStart).map(({ name }) => name);
    // What a reload takes away while it is being loaded is not waited for.
    this.#starting = new Set(atStart.filter((name) => this.#starting?.has(name) ?? true));
    this.#life.configure(terms, limitOf(limits), this.#options.now());
    this.#begun();
    this.#awaitIdleness();
  }

  /** All models that are loaded at the start are there, or were once. */
  get hasStarted(): boolean {
    return this.#starting?.size === 0;
  }

  /** Resolves when they are. @throws Error of the first one that could not be loaded */
  whenStarted(): Promise<void> {
    return this.#started.promise;
  }

  get models(): readonly FleetModel[] {
    return [...this.#models.values()].map((survey) => {
      const { id, phase } = this.#life.current(survey.settings.name)!;
      return { survey, phase, loaded: this.#loaded.get(id) ?? null };
    });
  }

  /** All engines there are, those included that finish what a replaced configuration began. */
  get engines(): readonly (EngineStatus & { readonly model: string })[] {
    return [...this.#loaded.values()].map(({ model, engine }) => ({ ...engine.status, model: model.id }));
  }

  /** The model of that name; null when there is none. `default` is the only one there is, or an alias. */
  find(name: string): SurveyedModel | null {
    const models = [...this.#models.values()];
    const named =
      this.#models.get(name) ?? models.find(({ settings: { aliases } }) => aliases.includes(name));
    if (named !== undefined) return named;
    return name === 'default' && models.length === 1 ? models[0]! : null;
  }

  /** For one request; a model that is not loaded is loaded because of it. */
  take({ settings: { name } }: SurveyedModel): Hold | Refusal {
    const verdict = this.#life.request(name, this.#options.now());
    if (verdict.type !== 'serve') return verdict;
    let held = true;
    return {
      loaded: this.#loaded.get(verdict.engine)!,
      release: () => {
        if (!held) return;
        held = false;
        this.#life.release(verdict.engine, this.#options.now());
        this.#awaitIdleness();
      },
    };
  }

  /** Ends every engine, whoever it serves. */
  async stop(): Promise<void> {
    if (this.#idleTimer !== null) clearTimeout(this.#idleTimer);
    await Promise.all([...this.#loaded.values()].map(({ engine }) => engine.stop()));
  }

  async #load(id: number): Promise<void> {
    const { now, log } = this.#options;
    const engine = this.#life.engines.find((one) => one.id === id)!;
    const { name } = engine;
    const begun = now();
    const survey = this.#models.get(name)!;
    if (mayUseWebGpu(survey.settings.engine.device)) this.#onWebGpu = survey;
    try {
      const loaded = await this.#options.load(survey);
      this.#loaded.set(id, loaded);
      this.#life.loaded(id, now());
      log.info({ model: name, ms: Math.round(now() - begun) }, 'loaded');
      if (!engine.retired) this.#starting?.delete(name);
      this.#begun();
    } catch (error) {
      const fault: LoadFault = loadFaultOf(error);
      this.#life.loadFailed(id, fault, now());
      log.error({ model: name, reason: fault.message, permanent: fault.permanent }, 'not loaded');
      if (!engine.retired && this.#starting?.has(name)) {
        this.#started.reject(new Error(`${name}: ${fault.message}`));
      }
    }
    this.#awaitIdleness();
  }

  async #unload(id: number): Promise<void> {
    const { model, engine } = this.#loaded.get(id)!;
    this.#loaded.delete(id);
    await Promise.allSettled([engine.stop(), model.encoder.close()]);
    this.#options.log.info({ model: model.id }, 'unloaded');
    this.#life.unloaded(id, this.#options.now());
  }

  /** Two engines on WebGPU in one process crash it. */
  #requireSameOnWebGpu(models: readonly SurveyedModel[]): void {
    const on = this.#onWebGpu;
    const other = models.find(
      (model) => mayUseWebGpu(model.settings.engine.device) && on !== null && !isSameEngine(model, on),
    );
    if (other === undefined) return;
    const { name, engine } = other.settings;
    throw new Error(
      `${name}: on ${engine.device.provider} it can neither be changed nor replace another model while the origin runs; restart it`,
    );
  }

  #begun(): void {
    if (this.hasStarted) this.#started.resolve();
  }

  /** One timer, for the model whose limit comes first. */
  #awaitIdleness(): void {
    if (this.#idleTimer !== null) clearTimeout(this.#idleTimer);
    const delay = this.#life.nextExpiry - this.#options.now();
    if (delay === Infinity) return;
    const expire = (): void => {
      this.#life.expire(this.#options.now());
      this.#awaitIdleness();
    };
    this.#idleTimer = setTimeout(expire, Math.min(Math.max(1, Math.ceil(delay)), LONGEST_TIMER_MS)).unref();
  }
}

const isSameEngine = (one: SurveyedModel, other: SurveyedModel): boolean =>
  one.settings.name === other.settings.name && one.key === other.key;

const FIXED_LOAD_MS = 2_000;
const BYTES_PER_MS = (200 * 2 ** 20) / 1000;

/** A cautious guess for a model that has not been loaded yet. */
const expectedLoadMs = ({ weightBytes }: SurveyedModel): number => FIXED_LOAD_MS + weightBytes / BYTES_PER_MS;
