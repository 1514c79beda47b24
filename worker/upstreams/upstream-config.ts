import * as z from 'zod';
import { type Settings, VARIABLE_NAMES } from '../env/settings.ts';

/**
 * The servers of models, from the database or from the variable UPSTREAMS. They name secrets; separate
 * variables hold their values.
 */

const milliseconds = z.int().min(1);

const timeouts = z.strictObject({
  connectMs: milliseconds
    .optional()
    .describe('Until the status of the response. Default: ACCEPT_TIMEOUT_MS.'),
  firstEventMs: milliseconds.default(60_000).describe('From the status to the first event.'),
  idleMs: milliseconds
    .default(120_000)
    .describe(
      'Between two events or heartbeats. An origin sends a heartbeat every 15 s while its engine works. Other servers are silent while a request waits in their queue.',
    ),
});

export const upstreamName = z
  .string()
  .regex(/^[A-Za-z0-9._-]{1,64}$/, 'expected 1 to 64 letters, digits and characters of ._-')
  .describe('Unique name, which usage records have.');

/** What sets an upstream could otherwise send the Worker's own secrets to an address of its choice. */
const secretName = (reserved: readonly string[]) =>
  z.string().refine((text) => !reserved.includes(text), {
    params: { code: 'invalid_value' },
    error: ({ input }) => `The variable ${String(input)} is the Worker's own. Name a secret of the upstream.`,
  });

const modelName = z.strictObject({
  id: z.string().min(1).describe('The public name.'),
  upstreamId: z
    .string()
    .min(1)
    .optional()
    .describe("The server's name or alias of the model; default: `id`. Several public names may use one."),
});
export type OriginModelName = z.infer<typeof modelName>;

/** Fields of every kind of upstream. */
const connection = {
  url: z
    .url('expected an address such as http://10.0.0.8:9100')
    .describe(
      'Base address; that of an OpenAI-compatible server with its version, e.g. `http://10.0.0.8:8000/v1`.',
    ),
  binding: z
    .string()
    .min(1)
    .optional()
    .describe('Name of the binding for requests: a VPC service or a client certificate; default: `fetch`.'),
  timeouts: timeouts.prefault({}).describe('Limits of waiting in milliseconds.'),
};

const origin = z.strictObject({
  kind: z.literal('origin').describe("'origin': an origin of this project."),
  ...connection,
  secret: secretName(VARIABLE_NAMES)
    .default('ORIGIN_SECRET')
    .describe('Name of the variable with the shared secret.'),
  models: z
    .array(modelName)
    .min(1)
    .optional()
    .describe('The models that clients may use, under these names; default: all under their own names.'),
});

const openAiModel = modelName.extend({
  contextLength: z.int().min(1).describe('Tokens of the context.'),
  created: z.int().default(0).describe('Unix seconds.'),
  infill: z
    .boolean()
    .default(false)
    .describe('The server supports fill-in-the-middle (`suffix`) for this model.'),
  rawCompletions: z
    .boolean()
    .default(true)
    .describe('False: the server has no raw completions for this model; clients get 415.'),
});

/** The kinds of OpenAI-compatible servers: openai-fields.ts has what each accepts in a body. */
const flavor = z.enum([
  'generic',
  'continuo',
  'openai',
  'vllm',
  'llm-d',
  'llamacpp',
  'litellm',
  'openrouter',
]);
export type Flavor = z.infer<typeof flavor>;

const openAi = z.strictObject({
  kind: z.literal('openai').describe("'openai': an OpenAI-compatible server."),
  ...connection,
  apiKey: secretName([...VARIABLE_NAMES, 'ORIGIN_SECRET'])
    .optional()
    .describe("Name of the variable with the server's API key; none = no key is sent."),
  cacheSalt: z
    .boolean()
    .optional()
    .describe(
      'Gives each tenant its own prefix cache, by `cache_salt` in every request, because cached prompts show in timing and usage. For vLLM: other servers ignore the field, and hosted APIs may reject it. Default: for the flavor `llm-d` only.',
    ),
  flavor: flavor
    .default('generic')
    .describe(
      'What the server is: decides which fields of a request it gets. `generic` gets all scalar ones.',
    ),
  flexPriority: z
    .int()
    .min(1)
    .optional()
    .describe(
      'Sent as `priority` of flex requests. For vLLM with `--scheduling-policy priority`: 0 goes first.',
    ),
  routerHeaders: z
    .enum(['x-llm-d-inference', 'x-gateway-inference'])
    .default('x-llm-d-inference')
    .describe('Of the flavor `llm-d`: how the names of the headers for its router begin.'),
  scoring: z
    .boolean()
    .default(true)
    .describe(
      'False: the server cannot score prompts. Otherwise it is asked, and one whose response lacks the logprobs is not asked again soon.',
    ),
  user: z
    .enum(['plain', 'hashed', 'omit'])
    .default('plain')
    .describe('How the server gets the field `user`; `hashed`: a pseudonym per tenant.'),
  models: z.array(openAiModel).min(1).describe('The models that clients may use.'),
});

/** An upstream without its name. */
export const upstreamBody = z.discriminatedUnion('kind', [origin, openAi]);

const named = z.discriminatedUnion('kind', [
  origin.extend({ name: upstreamName }),
  openAi.extend({ name: upstreamName }),
]);
export type UpstreamConfig = z.infer<typeof named>;
export type OpenAiConfig = Extract<UpstreamConfig, { readonly kind: 'openai' }>;

const upstreams = z
  .array(named)
  .min(1)
  .refine((list) => new Set(list.map((entry) => entry.name)).size === list.length, 'names must be unique');

/** Returns an upstream as the database has it. @throws Error that says what is wrong with it */
export function parseUpstream(id: string, text: string): UpstreamConfig {
  const parsed = named.safeParse({ ...(JSON.parse(text) as object), name: id });
  if (parsed.success) return parsed.data;
  throw new Error(`It is wrong at ${firstIssue(parsed.error)}`);
}

const firstIssue = ({ issues: [issue] }: z.ZodError): string =>
  `${issue?.path.join('.') || 'its top'}: ${issue?.message}`;

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
  throw new Error(`The variable UPSTREAMS is wrong at ${firstIssue(parsed.error)}`);
}
