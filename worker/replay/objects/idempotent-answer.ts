import { DurableObject } from 'cloudflare:workers';
import type { Env } from '../../env/env.ts';
import type { IdempotencyClaim, IdempotentAnswerRpc, StoredResponse } from '../../env/replay-protocol.ts';

interface State {
  /** Id of the request that runs or ran. Only this request may store a response or release the key. */
  readonly claimant: string;
  /** SHA-256 of the request. */
  readonly asked: string;
  /** Null while the first request runs. */
  readonly answer: StoredResponse | null;
}

const pieceKey = (index: number): string => `piece ${index}`;

/** A response is kept for one hour. */
const RETENTION_MS = 3_600_000;

/** One idempotency key of one tenant: the first request runs, others get its response. Idempotent. */
export class IdempotentAnswer extends DurableObject<Env> implements IdempotentAnswerRpc {
  /** @param runningMs milliseconds after which a running request counts as lost */
  async claim(claimant: string, requestHash: string, runningMs: number): Promise<IdempotencyClaim> {
    const state = await this.#state();
    if (state === undefined) {
      await this.ctx.storage.put('state', { claimant, asked: requestHash, answer: null } satisfies State);
      await this.ctx.storage.setAlarm(Date.now() + runningMs);
      return { turn: 'run' };
    }
    if (state.claimant === claimant) return { turn: 'run' };
    if (state.asked !== requestHash) return { turn: 'mismatch' };
    return state.answer === null ? { turn: 'wait' } : { turn: 'replay', answer: state.answer };
  }

  async keepPiece(claimant: string, index: number, text: string): Promise<void> {
    const state = await this.#state();
    if (state?.claimant === claimant) await this.ctx.storage.put(pieceKey(index), text);
  }

  async piece(index: number): Promise<string | null> {
    return (await this.ctx.storage.get<string>(pieceKey(index))) ?? null;
  }

  /** Stores the response for repeated requests. */
  async keep(claimant: string, answer: StoredResponse): Promise<void> {
    const state = await this.#state();
    if (state?.claimant !== claimant) return;
    await this.ctx.storage.put('state', { ...state, answer } satisfies State);
    await this.ctx.storage.setAlarm(Date.now() + RETENTION_MS);
  }

  /** Frees the key after a request that ended without a response to keep. */
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
