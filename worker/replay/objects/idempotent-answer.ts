import { DurableObject } from 'cloudflare:workers';
import type { Env } from '../../env.ts';

/** An answer that can be given again. */
export interface KeptAnswer {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
}

/** What a request with an idempotency key should do. */
export type Claim =
  | { readonly turn: 'run' }
  | { readonly turn: 'wait' }
  | { readonly turn: 'mismatch' }
  | { readonly turn: 'replay'; readonly answer: KeptAnswer };

interface State {
  /** The request that runs or ran, by a name of its own: only it may keep an answer or free the key. */
  readonly claimant: string;
  /** SHA-256 of what was asked. */
  readonly asked: string;
  /** Null while the first request runs. */
  readonly answer: KeptAnswer | null;
}

/** Answers are kept this long. */
const RETENTION_MS = 3_600_000;

/** One idempotency key of one tenant: the first request runs, the others get its answer. Every call may be repeated. */
export class IdempotentAnswer extends DurableObject<Env> {
  /** @param runningMs after which a running request is taken for lost */
  async claim(claimant: string, asked: string, runningMs: number): Promise<Claim> {
    const state = await this.#state();
    if (state === undefined) {
      await this.ctx.storage.put('state', { claimant, asked, answer: null } satisfies State);
      await this.ctx.storage.setAlarm(Date.now() + runningMs);
      return { turn: 'run' };
    }
    if (state.claimant === claimant) return { turn: 'run' };
    if (state.asked !== asked) return { turn: 'mismatch' };
    return state.answer === null ? { turn: 'wait' } : { turn: 'replay', answer: state.answer };
  }

  async keep(claimant: string, answer: KeptAnswer): Promise<void> {
    const state = await this.#state();
    if (state?.claimant !== claimant) return;
    await this.ctx.storage.put('state', { ...state, answer } satisfies State);
    await this.ctx.storage.setAlarm(Date.now() + RETENTION_MS);
  }

  /** The request ended without an answer worth keeping: the key may be used again. */
  async release(claimant: string): Promise<void> {
    const state = await this.#state();
    if (state?.claimant !== claimant) return;
    await this.ctx.storage.deleteAlarm();
    await this.ctx.storage.deleteAll();
  }

  override alarm(): Promise<void> {
    return this.ctx.storage.deleteAll();
  }

  #state(): Promise<State | undefined> {
    return this.ctx.storage.get<State>('state');
  }
}
