import * as z from 'zod';
import type { Settings } from '../env/settings.ts';
import { FLAVORS } from './flavors.ts';

/** The variable UPSTREAMS: the servers of models. It names secrets; separate variables hold their values. */

const milliseconds = z.int().min(1);

const timeouts = z.strictObject({
  /** Until the status of the response. */
  connectMs: milliseconds.optional(),
  /** From the status to the first event. */
  firstEventMs: milliseconds.default(60_000),
  /**
   * Between two events or heartbeats. The origin sends a heartbeat every 15 s while its engine works. Other
   * servers are silent while a request waits in their queue.
   */
  idleMs: milliseconds.default(120_000),
});

const name = z.string().regex(/^[A-Za-z0-9._-]{1,64}$/);

const modelName = z.strictObject({
  /** The public name. */
  id: z.string().min(1),
  /** The server's name or alias of the model; default: `id`. Several public names may use one. */
  upstreamId: z.string().min(1).optional(),
});
export type OriginModelName = z.infer<typeof modelName>;

/** Fields of every kind of upstream. */
const connection = {
  name,
  /** Base address; that of an OpenAI-compatible server with its version, e.g. `http://10.0.0.8:8000/v1`. */
  url: z.url(),
  /** Name of the binding for requests: a VPC service or a client certificate; default: `fetch`. */
  binding: z.string().min(1).optional(),
  timeouts: timeouts.prefault({}),
};

const origin = z.strictObject({
  ...connection,
  kind: z.literal('origin'),
  /** Name of the variable with the shared secret. */
  secret: z.string().default('ORIGIN_SECRET'),
  /** The models that clients may use, under these names; default: all models under their own names. */
  models: z.array(modelName).min(1).optional(),
});

const openAiModel = modelName.extend({
  contextLength: z.int().min(1),
  /** Unix seconds. */
  created: z.int().default(0),
  /** The server supports fill-in-the-middle (`suffix`) for this model. */
  infill: z.boolean().default(false),
  /** False: the server has no raw completions for this model; clients get 415. */
  rawCompletions: z.boolean().default(true),
});

const openAi = z.strictObject({
  ...connection,
  kind: z.literal('openai'),
  /** Name of the variable with the server's API key; none = no key is sent. */
  apiKey: z.string().optional(),
  /**
   * Gives each tenant its own prefix cache, by `cache_salt` in every request, because cached prompts show in
   * timing and usage. For vLLM: other servers ignore the field, and hosted APIs may reject it. Default: for
   * the flavor `llm-d` only.
   */
  cacheSalt: z.boolean().optional(),
  /** What the server is: decides which fields of a request it gets. `generic` gets all scalar ones. */
  flavor: z.enum(FLAVORS).default('generic'),
  /** Sent as `priority` of flex requests. For vLLM with `--scheduling-policy priority`: 0 goes first. */
  flexPriority: z.int().min(1).optional(),
  /** Of the flavor `llm-d`: how the names of the headers for its router begin. */
  routerHeaders: z.enum(['x-llm-d-inference', 'x-gateway-inference']).default('x-llm-d-inference'),
  /**
   * False: the server cannot score prompts. Otherwise it is asked, and one whose response lacks the logprobs
   * is not asked again soon.
   */
  scoring: z.boolean().default(true),
  /** How the server gets the field `user`; `hashed`: a pseudonym per tenant. */
  user: z.enum(['plain', 'hashed', 'omit']).default('plain'),
  models: z.array(openAiModel).min(1),
});

export type OpenAiConfig = z.infer<typeof openAi>;

const upstreams = z
  .array(z.discriminatedUnion('kind', [origin, openAi]))
  .min(1)
  .refine((list) => new Set(list.map((entry) => entry.name)).size === list.length, 'names must be unique');
export type UpstreamConfig = z.infer<typeof upstreams>[number];

/** @throws Error that says what is wrong with the variable */
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
