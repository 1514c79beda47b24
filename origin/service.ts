import { ApiError } from '../shared/errors.ts';
import type { OriginHealth } from '../shared/generation.ts';
import type { EnginePort } from './engine-port.ts';
import { describeModel, type ServedModel } from './served-model.ts';

/** The model and the engine that runs it. */
export interface Loaded {
  readonly model: ServedModel;
  readonly engine: EnginePort;
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

  /** @throws ApiError 503 while the model is not there */
  loaded(): Loaded {
    if (!this.#loaded) throw unavailable('model_loading', 'The model is still loading.', 5);
    return this.#loaded;
  }

  /**
   * Runs one generation; `whenIdle` waits for it.
   * @throws ApiError 503 while loading, restarting or draining
   */
  async hold<T>(generation: (loaded: Loaded) => Promise<T>): Promise<T> {
    if (this.#draining) throw unavailable('server_is_overloaded', 'The server is shutting down.', 1);
    const loaded = this.loaded();
    if (!loaded.engine.status.healthy) {
      throw unavailable('model_loading', 'The model is being loaded again.', 5);
    }
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
