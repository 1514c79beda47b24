import type { Env } from '../../../worker/env.ts';
import worker, {
  IdempotentAnswer as Answer,
  TenantLimiter as Limiter,
  StreamTail as Tail,
} from '../../../worker/index.ts';
import type { InnerRequestProps } from '../../../worker/replay/protocol.ts';

export class TenantLimiter extends Limiter {
  /** What happens to the next call of `block`, before it is heard. */
  #fate: () => Promise<unknown> = async () => {};

  async restart(): Promise<void> {
    this.ctx.abort('restarted');
  }

  async deafen(): Promise<void> {
    this.#fate = () => this.restart();
  }

  async dawdle(): Promise<void> {
    this.#fate = () => scheduler.wait(500);
  }

  override async block(...who: Parameters<Limiter['block']>): Promise<void> {
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

  /** Milliseconds until it is forgotten. */
  async remaining(): Promise<number> {
    return ((await this.ctx.storage.getAlarm()) ?? Infinity) - Date.now();
  }

  /** The next claim is written, but its answer gets lost. */
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

  /** As when its time is over. */
  async forget(): Promise<void> {
    await this.alarm();
  }

  /** What a follower still gets who has read nothing before its time was over. */
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

/** The object of a tenant's limiter, of an answer (`{tenant}/{idempotency key}`) or of a resumable stream. */
function objectOf(kind: string, name: string, { LIMITER, ANSWERS, STREAMS }: Env): unknown {
  if (kind === 'limiter') return LIMITER.get(LIMITER.idFromName(name));
  if (kind === 'answer') return ANSWERS.get(ANSWERS.idFromName(name.replace('/', '\n')));
  return STREAMS.get(STREAMS.idFromName(name));
}

/** The first event of an answer, after which it ends as if it were complete. */
async function cut(answer: Response): Promise<Response> {
  const reader = answer.body!.getReader();
  const { value } = await reader.read();
  await reader.cancel();
  return new Response(value, answer);
}

/**
 * The Worker with paths of its own, `/object/{kind}/{action}/{name}`, at which an object loses its memory, and more; with
 * the header `x-cut` it dies in the middle of what it answers to its own objects.
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
} satisfies ExportedHandler<Env>;

export { RegionLimiter } from '../../../worker/index.ts';
