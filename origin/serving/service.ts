import { ApiError, retryAfter } from '../../shared/errors.ts';
import type { ModelState, OriginHealth, OriginModel } from '../../shared/generation.ts';
import type { EngineClient } from '../engine/engine-client.ts';
import { describeModel, type ServedModel } from '../request/served-model.ts';
import type { Phase } from './engine-state.ts';
import type { Fleet, FleetModel, Refusal } from './fleet.ts';

/** What the HTTP half asks of the engine. */
export type EngineAccess = Pick<EngineClient, 'status' | 'submit' | 'abort' | 'stop'>;

/** A model and the engine that runs it. */
export interface Loaded {
  readonly model: ServedModel;
  readonly engine: EngineAccess;
}

/** Before the directories have been read nobody can say more. */
const FIRST_LOOK_SECONDS = 5;

/** The origin's life: loading → ready → draining; which requests it takes, and when the last one has ended. */
export class Service {
  readonly #fleet: Fleet;
  #draining = false;
  #inFlight = 0;
  readonly #idleWaiters: (() => void)[] = [];

  constructor(fleet: Fleet) {
    this.#fleet = fleet;
  }

  get health(): OriginHealth {
    const { engines, models } = this.#fleet;
    const sum = (count: 'running' | 'waiting') => engines.reduce((total, engine) => total + engine[count], 0);
    return {
      status: this.#status(),
      models: models.map(describe),
      running: sum('running'),
      waiting: sum('waiting'),
    };
  }

  #status(): OriginHealth['status'] {
    if (this.#draining) return 'draining';
    if (!this.#fleet.hasStarted) return 'loading';
    return this.#fleet.models.some(mayServe) ? 'ready' : 'unhealthy';
  }

  /**
   * Runs what needs a model, which stays loaded meanwhile; `whenIdle` waits for it.
   * An unhealthy engine is still asked: only a run that succeeds can heal it, and one that is down says so itself.
   * @throws ApiError 503 while draining or while the model is not loaded, 404 for a name that is not served
   */
  async hold<T>(name: string, use: (loaded: Loaded) => Promise<T> | T): Promise<T> {
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
        throw refusal('', { type: 'loading', retryAfterMs: FIRST_LOOK_SECONDS * 1000 });
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

  /** From now on no generation is taken. */
  drain(): void {
    this.#draining = true;
  }

  /** Resolves when no generation is in flight. */
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

/** A loaded engine whose thread has died is being started again. */
export const stateOf = ({ phase, loaded }: FleetModel): ModelState =>
  loaded && !loaded.engine.status.healthy ? 'loading' : STATES[phase];

/** Now, or because a request loads it. */
const mayServe = ({ phase, loaded }: FleetModel): boolean =>
  loaded ? loaded.engine.status.healthy : phase !== 'failed';

function describe(model: FleetModel): OriginModel {
  const { settings, created, contextLength, vocabularySize, infill, defaults } = model.survey;
  return {
    id: settings.name,
    ...{ created, contextLength, vocabularySize, infill },
    ...(model.loaded && describeModel(model.loaded.model)),
    ...{ aliases: [...settings.aliases], defaults, state: stateOf(model) },
  };
}

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
