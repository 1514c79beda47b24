import * as z from 'zod';

const milliseconds = (fallback: number) => z.coerce.number().int().min(1).default(fallback);

/** Normalizes a configured page origin to the form that browsers send; null if it is not an origin. */
function pageOrigin(text: string): string | null {
  if (text === '*') return text;
  const url = text.includes('://') ? URL.parse(text) : null;
  if (url === null) return null;
  // URL reports the origin 'null' for schemes such as those of browser extensions.
  return url.origin === 'null' ? text : url.origin;
}

const sha256 = z.string().regex(/^[0-9a-f]{64}$/);

const settings = z.object({
  /** Deployment environment. The development key is accepted only in `development`. */
  ENVIRONMENT: z.enum(['development', 'staging', 'production']).default('production'),
  ORIGIN_URL: z.url().default('http://127.0.0.1:9100'),
  /** Name of the binding that carries requests to ORIGIN_URL. If absent: the platform's `fetch`. */
  ORIGIN_BINDING: z.string().min(1).optional(),
  /**
   * JSON list of upstreams, if the database has none. If absent, the only upstream is the origin at
   * ORIGIN_URL.
   */
  UPSTREAMS: z.string().optional(),
  /** Additional names of served models: comma-separated pairs such as `davinci-002=org/tiny`. */
  MODEL_ALIASES: z
    .string()
    .default('')
    .transform((text) =>
      text
        .split(',')
        .map((pair) => pair.trim())
        .filter((pair) => pair !== '')
        .map((pair) => /^([^=\s]+)\s*=\s*(\S+)$/.exec(pair))
        .map((match) => match && { name: match[1]!, model: match[2]! }),
    )
    .pipe(
      z.array(
        z.object({ name: z.string(), model: z.string() }, 'expected pairs such as davinci-002=org/tiny'),
      ),
    ),
  /** Page origins that may call from a browser: comma-separated, or `*` for all. */
  CORS_ORIGINS: z
    .string()
    .default('')
    .transform((text) =>
      text
        .split(/[\s,]+/)
        .filter((origin) => origin !== '')
        .map(pageOrigin),
    )
    .pipe(z.array(z.string('expected origins such as https://app.example.com, or *'))),
  /** Writes one line of JSON per request. */
  LOG_REQUESTS: z.stringbool().default(false),
  /** Hex SHA-256 of the key of the built-in development tenant. Never set it in production. */
  DEVELOPMENT_KEY_SHA256: sha256.optional(),
  /** Hex SHA-256 of the first admin key, which creates the other keys. */
  ADMIN_KEY_SHA256: sha256.optional(),
  /**
   * Keys the check digits in the ids of API keys. If absent, ids have none. It cannot be changed: see
   * docs/operating.md.
   */
  KEY_ID_SECRET: z.string().min(32).optional(),
  /** Signs the alerts that are sent to the webhooks of tenants. If absent, tenants cannot have webhooks. */
  WEBHOOK_SECRET: z.string().min(32).optional(),
  /** The secret before it. During a rotation, alerts are signed with both. */
  WEBHOOK_SECRET_OLD: z.string().min(32).optional(),
  /** Shares of limits of money at which alerts are sent, in per cent: comma-separated. */
  ALERT_SHARES: z
    .string()
    .default('50,80,100')
    .transform((text) => text.split(',').map(Number))
    .pipe(z.array(z.int('expected per cents such as 50,80,100').min(1).max(100))),
  /** Gets each billed request once or more, as CloudEvents in batches. */
  BILLING_URL: z.url().optional(),
  /** Signs these batches. */
  BILLING_SECRET: z.string().min(16).optional(),
  /** The secret before it. During a rotation, they are signed with both. */
  BILLING_SECRET_OLD: z.string().min(16).optional(),
  /** Sent with these batches as a Bearer token. */
  BILLING_TOKEN: z.string().min(1).optional(),
  /** `refused`: keys whose ids have no keyed check fail with 401. */
  UNCHECKED_KEYS: z.enum(['accepted', 'refused']).default('accepted'),
  /** Days of usage that are older than this are added up to months. */
  USAGE_DAYS: z.coerce.number().int().min(31).default(400),
  /** The records of single requests are deleted after this many days; 0 = none are stored. */
  REQUEST_DAYS: z.coerce.number().int().min(0).default(30),
  /** The usage of a tenant is in the summary of all tenants this long after it changed, at the latest. */
  USAGE_REPORT_MS: milliseconds(300_000),
  /** The limiter of an erased tenant refuses requests for this long before it deletes its data. */
  ERASE_AFTER_MS: milliseconds(120_000),
  /** Larger request bodies fail with 413. */
  MAX_BODY_BYTES: z.coerce
    .number()
    .int()
    .min(1)
    .default(2 * 1024 * 1024),
  /** Bytes of all request bodies that an isolate holds at the same time; more fail with 503. */
  MAX_HELD_BODY_BYTES: z.coerce
    .number()
    .int()
    .min(1)
    .default(16 * 1024 * 1024),
  /** Request bodies that take longer to arrive fail with 408. */
  BODY_TIMEOUT_MS: milliseconds(30_000),
  /**
   * A response that is not complete by then begins with 200. Later failures are an error event or a broken
   * connection.
   */
  EARLY_ANSWER_MS: milliseconds(2_000),
  /**
   * After this much silence, a stream gets a keep-alive comment, and a plain response that has begun gets a
   * space.
   */
  KEEP_ALIVE_MS: milliseconds(1_000),
  /** Longer generations fail with 504. */
  REQUEST_TIMEOUT_MS: milliseconds(600_000),
  /** If an upstream has not accepted the request by then, the request fails with 504. */
  ACCEPT_TIMEOUT_MS: milliseconds(30_000),
  /** How long the Worker caches an origin's list of models. */
  MODELS_TTL_MS: z.coerce.number().int().min(0).default(5_000),
  /** Upper bound of prompts · max(n, best_of) of one request. */
  MAX_SEQUENCES: z.coerce.number().int().min(1).default(256),
  /** Upper bound of the base64 bytes of the rows of `logprobs_format` in one response. */
  MAX_LOGPROB_BYTES: z.coerce
    .number()
    .int()
    .min(1)
    .default(16 * 1024 * 1024),
  /** A reservation ends if its Worker does not renew it within this time. */
  RESERVATION_TTL_MS: milliseconds(30_000),
});

export const VARIABLE_NAMES: readonly string[] = Object.keys(settings.shape);

/** The parsed variables, with defaults. */
export type Settings = z.infer<typeof settings>;

/** The variables as the platform provides them: text. */
export type Variables = { readonly [Name in keyof Settings]?: string };

/** @throws Error that names the first invalid variable */
export function parseSettings(variables: Variables): Settings {
  const parsed = settings.safeParse(variables);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  throw new Error(`The variable ${issue?.path.join('.')} is invalid: ${issue?.message}`);
}
