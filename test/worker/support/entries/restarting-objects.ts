import type { Env } from '../../../../worker/env/env.ts';
import type { InnerRequestProps } from '../../../../worker/env/replay-protocol.ts';
import worker, {
  IdempotentAnswer as Answer,
  TenantLimiter as Limiter,
  StreamTail as Tail,
} from '../../../../worker/index.ts';

export class TenantLimiter extends Limiter {
  /** Runs before the next call of `block`. */
  #fate: () => Promise<unknown> = async () => {};

  #losesReply = false;
  #fails = false;

  async restart(): Promise<void> {
    this.ctx.abort('restarted');
  }

  /** Loses the answer to the next reservation after it was stored. */
  async loseReply(): Promise<void> {
    this.#losesReply = true;
  }

  override async exchange(...values: Parameters<Limiter['exchange']>): ReturnType<Limiter['exchange']> {
    const result = await super.exchange(...values);
    if (!this.#losesReply || values[0].reservation === null) return result;
    this.#losesReply = false;
    await this.ctx.storage.sync();
    throw new Error('lost');
  }

  async deafen(): Promise<void> {
    this.#fate = () => this.restart();
  }

  async dawdle(): Promise<void> {
    this.#fate = () => scheduler.wait(500);
  }

  /** Ids of blocked keys. */
  async blocks(): Promise<string[]> {
    const rows = this.ctx.storage.sql.exec<{ id: string }>('SELECT id FROM blocked');
    return rows.toArray().map(({ id }) => id);
  }

  /** Fails until it restarts. */
  async fail(): Promise<void> {
    this.#fails = true;
  }

  override async ask(...questions: Parameters<Limiter['ask']>): ReturnType<Limiter['ask']> {
    if (this.#fails) throw new Error('failed');
    return super.ask(...questions);
  }

  override async block(...who: Parameters<Limiter['block']>): Promise<void> {
    if (this.#fails) throw new Error('failed');
    const fate = this.#fate;
    this.#fate = async () => {};
    await fate();
    await super.block(...who);
  }
}

export class IdempotentAnswer extends Answer {
  #deaf = false;

  async restart(): Promise<void> {
    this.ctx.abort('restarted');
  }

  /** Milliseconds until its data is deleted. */
  async remaining(): Promise<number> {
    return ((await this.ctx.storage.getAlarm()) ?? Infinity) - Date.now();
  }

  /** Loses the answer to the next claim after it was stored. */
  async deafen(): Promise<void> {
    this.#deaf = true;
  }

  override async claim(...claim: Parameters<Answer['claim']>): ReturnType<Answer['claim']> {
    const answer = await super.claim(...claim);
    if (!this.#deaf) return answer;
    await this.ctx.storage.sync();
    this.ctx.abort('restarted');
    throw new Error('lost');
  }
}

export class StreamTail extends Tail {
  async restart(): Promise<void> {
    this.ctx.abort('restarted');
  }

  /** Runs the alarm. */
  async forget(): Promise<void> {
    await this.alarm();
  }

  /** Returns the answer to a reader that arrives after the retention. */
  async lag(): Promise<string> {
    const stream = await this.resume(0, 'development');
    await this.alarm();
    return new Response(stream).text();
  }

  async tables(): Promise<number> {
    return this.ctx.storage.sql.exec('SELECT 1 FROM sqlite_master WHERE type = ?', 'table').toArray().length;
  }
}

type Action = Record<string, () => Promise<unknown>>;

/**
 * Returns the object of a tenant's limiter, of an answer (`{tenant}/{idempotency key}`) or of a resumable
 * stream.
 */
function objectOf(kind: string, name: string, { LIMITER, ANSWERS, STREAMS }: Env): unknown {
  if (kind === 'limiter') return LIMITER.get(LIMITER.idFromName(name));
  if (kind === 'answer') return ANSWERS.get(ANSWERS.idFromName(name.replace('/', '\n')));
  return STREAMS.get(STREAMS.idFromName(name));
}

/** Returns an answer that ends cleanly after its first event. */
async function cut(answer: Response): Promise<Response> {
  const reader = answer.body!.getReader();
  const { value } = await reader.read();
  await reader.cancel();
  return new Response(value, answer);
}

/**
 * The Worker with test paths, `/object/{kind}/{action}/{name}`, for example to restart an object. With the
 * header `x-cut` its answer to its own objects breaks off.
 */
export default {
  async fetch(request, env, context) {
    const isOwn = (context.props as Partial<InnerRequestProps> | undefined)?.completion !== undefined;
    if (isOwn && request.headers.has('x-cut')) return cut(await worker.fetch!(request, env, context));
    const [, kind, action, name] =
      /^\/object\/(\w+)\/(\w+)\/([\w/]+)$/.exec(new URL(request.url).pathname) ?? [];
    if (kind === undefined) return worker.fetch!(request, env, context);
    const object = objectOf(kind, name!, env) as Action;
    return Response.json((await object[action!]!().catch(() => null)) ?? null);
  },
  scheduled: worker.scheduled!,
} satisfies ExportedHandler<Env>;

export { BatchRun } from '../../../../worker/index.ts';
