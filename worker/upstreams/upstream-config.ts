import * as z from 'zod';
import type { Settings } from '../env.ts';

/** The variable UPSTREAMS: who serves models. Secrets are named here and stand in variables of their own. */

const milliseconds = z.int().min(1);

const timeouts = z.strictObject({
  /** Until an answer's status must be there. */
  connectMs: milliseconds.optional(),
  /** From there to the first event; a stream that is written at our origin begins with its acceptance. */
  firstEventMs: milliseconds.default(60_000),
  /**
   * Between two signs of life. Our origin gives one every 15 s while its engine works; other servers are silent while a
   * request waits in their queue.
   */
  idleMs: milliseconds.default(120_000),
});

const name = z.string().regex(/^[A-Za-z0-9._-]{1,64}$/);

const originModelName = z.strictObject({
  /** The name callers use. */
  id: z.string().min(1),
  /** The origin's name or alias of the model; the same unless it is given. Several names may stand for one model. */
  upstreamId: z.string().min(1).optional(),
});
export type OriginModelName = z.infer<typeof originModelName>;

/** Of every kind. */
const reached = {
  name,
  /** Base address; that of an OpenAI-compatible server with its version, e.g. `http://10.0.0.8:8000/v1`. */
  url: z.url(),
  /** Name of the binding that carries requests there: a VPC service, a client certificate. Without it `fetch` does. */
  binding: z.string().min(1).optional(),
  timeouts: timeouts.prefault({}),
};

const origin = z.strictObject({
  ...reached,
  kind: z.literal('origin'),
  /** Name of the variable with the shared secret. */
  secret: z.string().default('ORIGIN_SECRET'),
  /** What callers may ask it for, and under which names; all it has under its own when absent. */
  models: z.array(originModelName).min(1).optional(),
});

const openAiModel = z.strictObject({
  /** The name callers use. */
  id: z.string().min(1),
  /** The name the server uses; the same unless it is given. */
  upstreamId: z.string().min(1).optional(),
  contextLength: z.int().min(1),
  /** Unix seconds. */
  created: z.int().default(0),
  /** The server fills in the middle for this model (`suffix`). */
  infill: z.boolean().default(false),
  /** False: the server has no raw completions for it; callers get 415 with what to do. */
  rawCompletions: z.boolean().default(true),
});
export type OpenAiModel = z.infer<typeof openAiModel>;

const openAi = z.strictObject({
  ...reached,
  kind: z.literal('openai'),
  /** Name of the variable with the server's API key; none = no key is sent. */
  apiKey: z.string().optional(),
  /**
   * Gives each tenant a prefix cache of its own there, by `cache_salt` in every request: what was cached shows in the time
   * to the first token and in the usage. For vLLM; others ignore the field, and hosted APIs refuse what they do not know.
   */
  cacheSalt: z.boolean().default(false),
  models: z.array(openAiModel).min(1),
});

const upstreams = z
  .array(z.discriminatedUnion('kind', [origin, openAi]))
  .min(1)
  .refine((list) => new Set(list.map((entry) => entry.name)).size === list.length, 'names must be unique');
export type UpstreamConfig = z.infer<typeof upstreams>[number];

/** @throws Error saying what is wrong with the variable; the deployment is at fault, no caller */
export function parseUpstreams({
  UPSTREAMS,
  ORIGIN_URL,
  ORIGIN_BINDING,
}: Settings): readonly UpstreamConfig[] {
  if (UPSTREAMS === undefined) {
    return upstreams.parse([{ kind: 'origin', name: 'origin', url: ORIGIN_URL, binding: ORIGIN_BINDING }]);
  }
  let value: unknown;
  try {
    value = JSON.parse(UPSTREAMS);
  } catch {
    throw new Error('The variable UPSTREAMS is not JSON.');
  }
  const parsed = upstreams.safeParse(value);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  throw new Error(
    `The variable UPSTREAMS is wrong at ${issue?.path.join('.') || 'its top'}: ${issue?.message}`,
  );
}
