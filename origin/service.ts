import { ApiError } from '../shared/errors.ts';
import type { OriginHealth } from '../shared/generation.ts';
import type { EngineClient } from './engine/engine-client.ts';
import { describeModel, type ServedModel } from './served-model.ts';

/** What the HTTP half asks of the engine. */
export type EngineAccess = Pick<EngineClient, 'status' | 'submit' | 'abort'>;

/** The model and the engine that runs it. */
export interface Loaded {
  readonly model: ServedModel;
  readonly engine: EngineAccess;
}

const unavailable = (code: 'model_loading' | 'server_is_overloaded', message: string, seconds: number) =>
  new ApiError(code, message, { headers: { 'retry-after': String(seconds) } });

/** The origin's life: loading → ready → draining; which requests it takes, and when the last one has ended. */
export class Service {
  #loaded: Loaded | null = null;
  #draining = false;
  #inFlight = 0;
  readonly #idleWaiters: (() => void)[] = [];

  ready(loaded: Loaded): void {
    this.#loaded = loaded;
  }

  get health(): OriginHealth {
    const status = this.#loaded?.engine.status;
    return {
      status: this.#status(),
      models: this.#loaded ? [describeModel(this.#loaded.model)] : [],
      running: status?.running ?? 0,
      waiting: status?.waiting ?? 0,
    };
  }

  #status(): OriginHealth['status'] {
    if (this.#draining) return 'draining';
    if (!this.#loaded) return 'loading';
    return this.#loaded.engine.status.healthy ? 'ready' : 'unhealthy';
  }

  /** @throws ApiError 503 until the model has been loaded for the first time */
  loaded(): Loaded {
    if (!this.#loaded) throw unavailable('model_loading', 'The model is still loading.', 5);
    return this.#loaded;
  }

  /**
   * Runs one generation; `whenIdle` waits for it.
   * An unhealthy engine is still asked: only a run that succeeds can heal it, and one that is down says so itself.
   * @throws ApiError 503 while loading or draining
   */
  async hold<T>(generation: (loaded: Loaded) => Promise<T>): Promise<T> {
    if (this.#draining) throw unavailable('server_is_overloaded', 'The server is shutting down.', 1);
    const loaded = this.loaded();
    this.#inFlight += 1;
    try {
      return await generation(loaded);
    } finally {
      this.#inFlight -= 1;
      if (this.#inFlight === 0) for (const wake of this.#idleWaiters.splice(0)) wake();
    }
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
