import { backOff } from '@continuo/shared/retry.ts';
import {
  type Actions,
  Engines,
  expectedMs,
  type LimitOf,
  MARGIN,
  type ModelEngine,
  type ModelSpec,
} from './engines.ts';

const FIRST_RETRY_MS = 2_000;
const LAST_RETRY_MS = 300_000;

/** The answer to a request for a model. */
export type RequestDecision =
  | { readonly type: 'serve'; readonly engine: number }
  /** The model is being loaded, if necessary because of this request. */
  | { readonly type: 'loading'; readonly retryAfterMs: number }
  /** Loading failed; null = there will be no retry with this configuration. */
  | { readonly type: 'failed'; readonly retryAfterMs: number | null };

interface Deployment {
  spec: ModelSpec;
  current: ModelEngine;
  /** Is loading or failed to load; serves the requests once loaded. */
  successor: ModelEngine | null;
}

/**
 * The life cycle of the engines of an origin, one per configured model:
 *
 *     unloaded → waiting (for memory) → loading → loaded → unloading → unloaded
 *                                       loading → failed → waiting …
 *
 * An engine with users is never unloaded, and none is loaded twice. Engines that hold memory (loading,
 * loaded, unloading) never exceed the limit of their memory. An engine that the configuration no longer names
 * is retired: it accepts no new request, is unloaded after its last user, and is then forgotten. Pure: time
 * is a parameter, actions are callbacks.
 */
export class LifeCycle {
  readonly #models = new Map<string, Deployment>();
  readonly #engines: Engines;

  /** @param actions each is answered later by `loaded`, `loadFailed` or `unloaded` */
  constructor(actions: Actions) {
    this.#engines = new Engines(actions);
  }

  /** The engine that serves a model's requests. */
  current(name: string): Readonly<ModelEngine> | undefined {
    return this.#models.get(name)?.current;
  }

  /** All engines, retired ones included. */
  get engines(): readonly Readonly<ModelEngine>[] {
    return this.#engines.all;
  }

  heldBytes(memory: string): number {
    return this.#engines.heldBytes(memory);
  }

  /**
   * Replaces the configuration. An engine whose key stays the same continues; if it had failed, it is tried
   * again. A new key means a new engine. It is loaded at once if both fit into memory, otherwise after the
   * old one's last request.
   */
  configure(models: readonly ModelSpec[], limitOf: LimitOf, now: number): void {
    this.#engines.limitOf = limitOf;
    const names = new Set(models.map(({ name }) => name));
    for (const [name, { current, successor }] of this.#models) {
      if (names.has(name)) continue;
      this.#models.delete(name);
      this.#engines.retire(successor);
      this.#engines.retire(current);
    }
    for (const spec of models) this.#deploy(spec);
    this.#admit(now);
  }

  #deploy(spec: ModelSpec): void {
    const deployed = this.#models.get(spec.name);
    if (deployed === undefined) {
      const current = this.#engines.engineFor(spec);
      this.#models.set(spec.name, { spec, current, successor: null });
      if (spec.loadAtStart) this.#engines.want(current);
      return;
    }
    deployed.spec = spec;
    const { current, successor } = deployed;
    if (successor?.key === spec.key && successor.phase !== 'failed') return;
    this.#engines.retire(successor);
    deployed.successor = null;
    if (current.key === spec.key) {
      if (current.phase === 'failed') this.#engines.toUnloaded(current);
      if (current.phase === 'unloaded' && spec.loadAtStart) this.#engines.want(current);
      return;
    }
    const next = this.#engines.engineFor(spec);
    if (current.phase === 'loaded' && next.phase !== 'loaded' && this.#engines.fits(next)) {
      deployed.successor = next;
      this.#engines.want(next);
      return;
    }
    const wanted = current.wanted || !['unloaded', 'failed', 'unloading'].includes(current.phase);
    deployed.current = next;
    this.#engines.retire(current);
    if (wanted || spec.loadAtStart) this.#engines.want(next);
  }

  /** Decides on a request for a configured model. The caller releases a served one later. */
  request(name: string, now: number): RequestDecision {
    const { current: engine, successor } = this.#models.get(name)!;
    if (engine.phase === 'loaded') {
      if (successor?.phase === 'failed' && now >= successor.retryAt && this.#engines.fits(successor)) {
        this.#engines.want(successor);
        this.#admit(now);
      }
      engine.users += 1;
      return { type: 'serve', engine: engine.id };
    }
    const { retryAt } = engine;
    if (engine.phase === 'failed' && now < retryAt) {
      return { type: 'failed', retryAfterMs: retryAt === Infinity ? null : retryAt - now };
    }
    this.#engines.want(engine);
    this.#admit(now);
    const retryAfterMs = expectedMs(engine, now);
    engine.expectedAt = Math.max(engine.expectedAt, now + retryAfterMs);
    return { type: 'loading', retryAfterMs };
  }

  /** Ends a served request. */
  release(id: number, now: number): void {
    const engine = this.#engines.get(id);
    engine.users -= 1;
    engine.idleSince = now;
    if (engine.retired && engine.users === 0) this.#engines.unload(engine);
  }

  loaded(id: number, now: number): void {
    const engine = this.#engines.get(id);
    engine.phase = 'loaded';
    engine.idleSince = Math.max(now, engine.expectedAt);
    engine.loadMs = (now - engine.loadingSince) * MARGIN;
    engine.failures = 0;
    if (engine.retired) {
      this.#engines.unload(engine);
      return;
    }
    const deployed = this.#models.get(engine.name)!;
    if (deployed.successor !== engine) return;
    const old = deployed.current;
    deployed.current = engine;
    deployed.successor = null;
    this.#engines.retire(old);
  }

  loadFailed(id: number, fault: { readonly permanent: boolean }, now: number): void {
    const engine = this.#engines.get(id);
    if (engine.retired) this.#engines.forget(engine);
    else {
      engine.phase = 'failed';
      engine.failures += 1;
      engine.retryAt = fault.permanent
        ? Infinity
        : now + backOff(engine.failures, FIRST_RETRY_MS, LAST_RETRY_MS);
    }
    this.#admit(now);
  }

  unloaded(id: number, now: number): void {
    const engine = this.#engines.get(id);
    if (engine.retired) this.#engines.forget(engine);
    else this.#engines.toUnloaded(engine);
    this.#admit(now);
  }

  /** Unloads engines whose idle time has passed. */
  expire(now: number): void {
    for (const deployed of this.#models.values()) {
      const { current, spec } = deployed;
      if (expiryOf(current, spec) > now) continue;
      if (current.key === spec.key) this.#engines.unload(current);
      else this.#replaceOutdated(deployed);
    }
  }

  /** The next time at which `expire` has work; Infinity = none. */
  get nextExpiry(): number {
    return Math.min(...[...this.#models.values()].map(({ current, spec }) => expiryOf(current, spec)));
  }

  /** If memory is full, gives up engines that still serve only because their successors failed. */
  #admit(now: number): void {
    this.#engines.admit(now, (full) => {
      for (const deployed of this.#models.values()) {
        const { current, successor } = deployed;
        if (current.memory === full && successor?.phase === 'failed') this.#replaceOutdated(deployed);
      }
    });
  }

  /** Replaces an engine of an earlier configuration by one of the present configuration. */
  #replaceOutdated(deployed: Deployment): void {
    const { current, successor, spec } = deployed;
    deployed.current = successor ?? this.#engines.engineFor(spec);
    deployed.successor = null;
    this.#engines.retire(current);
  }
}

function expiryOf({ phase, users, idleSince }: ModelEngine, { idleMs }: ModelSpec): number {
  return phase === 'loaded' && users === 0 && idleMs !== null ? idleSince + idleMs : Infinity;
}
