import { hash } from 'node:crypto';
import { ApiError, retryAfter } from '@continuo/shared/errors.ts';
import type { ModelState, OriginHealth, OriginModel } from '@continuo/shared/origin-model.ts';
import manifest from '../package.json' with { type: 'json' };
import { describeModel } from '../request/served-model.ts';
import type { Phase } from './engines.ts';
import type { Fleet, FleetModel, Refusal } from './fleet.ts';
import type { FaultyModel, InspectedModel } from './inspect-model.ts';
import type { LoadedModel } from './load-model.ts';

/** `retry-after` before the model directories have been read. */
const STARTUP_RETRY_SECONDS = 5;

/** The state of the origin (loading, ready, draining), and the requests that it accepts. */
export class Service {
  readonly #fleet: Fleet;
  #leaving = false;
  #draining = false;
  #inFlight = 0;
  readonly #idleWaiters: (() => void)[] = [];

  constructor(fleet: Fleet) {
    this.#fleet = fleet;
  }

  get health(): OriginHealth {
    const { engines, models, faulty } = this.#fleet;
    const sum = (count: 'running' | 'waiting') => engines.reduce((total, engine) => total + engine[count], 0);
    return {
      status: this.#status(),
      models: [...models.map(describe), ...faulty.map(describeFaulty)],
      running: sum('running'),
      waiting: sum('waiting'),
    };
  }

  #status(): OriginHealth['status'] {
    if (this.#leaving) return 'draining';
    if (!this.#fleet.hasStarted) return 'loading';
    return this.#fleet.models.some(mayServe) ? 'ready' : 'unhealthy';
  }

  /**
   * Runs `use` with a model that stays loaded meanwhile; `whenIdle` waits for it.
   * An unhealthy engine still gets requests, because only a successful run can make it healthy again.
   * @throws ApiError 503 while draining or while the model is not loaded, 404 for an unknown name
   */
  async hold<T>(name: string, use: (loaded: LoadedModel) => Promise<T> | T): Promise<T> {
    if (this.#draining) {
      throw unavailable('server_is_overloaded', 'The server is shutting down.', { 'retry-after': '1' });
    }
    const { loaded, release } = this.#take(name);
    this.#inFlight += 1;
    try {
      return await use(loaded);
    } finally {
      release();
      this.#inFlight -= 1;
      if (this.#inFlight === 0) for (const wake of this.#idleWaiters.splice(0)) wake();
    }
  }

  #take(name: string) {
    const model = this.#fleet.find(name);
    if (model === null) {
      if (this.#fleet.models.length === 0)
        throw refusal('', { type: 'loading', retryAfterMs: STARTUP_RETRY_SECONDS * 1000 });
      throw new ApiError(
        'model_not_found',
        `The model '${name.slice(0, 100)}' does not exist or you do not have access to it.`,
        { param: 'model' },
      );
    }
    const taken = this.#fleet.take(model);
    if ('loaded' in taken) return taken;
    throw refusal(` '${model.settings.name}'`, taken);
  }

  /** True from `leave` on. */
  get isLeaving(): boolean {
    return this.#leaving;
  }

  /** Serves requests, but is no longer ready. */
  leave(): void {
    this.#leaving = true;
  }

  /** Refuses all further requests. */
  drain(): void {
    this.#leaving = true;
    this.#draining = true;
  }

  /** Resolves when no request is in flight. */
  whenIdle(): Promise<void> {
    if (this.#inFlight === 0) return Promise.resolve();
    return new Promise((resolve) => this.#idleWaiters.push(resolve));
  }
}

const STATES: Readonly<Record<Phase, ModelState>> = {
  unloaded: 'unloaded',
  unloading: 'unloaded',
  waiting: 'loading',
  loading: 'loading',
  loaded: 'loaded',
  failed: 'failed',
};

/** A loaded engine whose thread died is being restarted. */
const stateOf = ({ phase, loaded }: FleetModel): ModelState =>
  loaded && !loaded.engine.status.healthy ? 'loading' : STATES[phase];

/** Reports whether the model serves now or can be loaded by a request. */
const mayServe = ({ phase, loaded }: FleetModel): boolean =>
  loaded ? loaded.engine.status.healthy : phase !== 'failed';

/**
 * Returns a hash of all that a model's output depends on, except the request and the machine. On the CPU, the
 * output depends on the slots only if there is one; see docs/determinism.md.
 */
export function fingerprintOf({ content, contextLength, slots, defaults, settings }: InspectedModel): string {
  const { infill, device } = settings.engine;
  const shape = device.provider === 'cpu' ? slots > 1 : slots;
  const facts = [manifest.version, content, device.provider, shape, contextLength, infill, defaults];
  return `fp_${hash('sha256', JSON.stringify(facts)).slice(0, 16)}`;
}

function describe(model: FleetModel): OriginModel {
  const { settings, build, created, contextLength, vocabularySize, infill, defaults } = model.model;
  return {
    id: settings.name,
    created,
    fingerprint: fingerprintOf(model.model),
    contextLength,
    vocabularySize,
    infill,
    tokenHealing: true,
    build: build ?? undefined,
    ...(model.loaded && describeModel(model.loaded.model)),
    aliases: [...settings.aliases],
    defaults,
    state: stateOf(model),
    ...(model.reason !== null && { reason: model.reason }),
  };
}

/** Nothing is known about a model whose directory cannot be read. */
const describeFaulty = ({ settings, reason }: FaultyModel): OriginModel => ({
  id: settings.name,
  created: 0,
  contextLength: 0,
  vocabularySize: 0,
  infill: false,
  aliases: [...settings.aliases],
  defaults: {},
  state: 'unavailable',
  reason,
});

function refusal(which: string, refused: Refusal): ApiError {
  const { retryAfterMs } = refused;
  if (retryAfterMs === null) {
    const headers = { 'x-should-retry': 'false' };
    return unavailable('model_unavailable', `The model${which} could not be loaded.`, headers);
  }
  const headers = retryAfter(retryAfterMs);
  return refused.type === 'loading'
    ? unavailable('model_loading', `The model${which} is being loaded.`, headers)
    : unavailable(
        'model_unavailable',
        `The model${which} could not be loaded and will be tried again.`,
        headers,
      );
}

const unavailable = (
  code: 'model_loading' | 'model_unavailable' | 'server_is_overloaded',
  message: string,
  headers: Readonly<Record<string, string>>,
) => new ApiError(code, message, { headers });
