import * as z from 'zod';
import type { Bindings } from './bindings.ts';

const milliseconds = (fallback: number) => z.coerce.number().int().min(1).default(fallback);

/** A page's origin as browsers write it, however it was written; null for what is none. */
function pageOrigin(text: string): string | null {
  if (text === '*') return text;
  const url = text.includes('://') ? URL.parse(text) : null;
  if (url === null) return null;
  // Of schemes that are not the web's, such as those of extensions, no origin is told.
  return url.origin === 'null' ? text : url.origin;
}

const sha256 = z.string().regex(/^[0-9a-f]{64}$/);

const settings = z.object({
  /** Where this runs; the development key is accepted in `development` alone. */
  ENVIRONMENT: z.enum(['development', 'staging', 'production']).default('development'),
  ORIGIN_URL: z.url().default('http://127.0.0.1:9100'),
  /** Name of the binding that carries requests to ORIGIN_URL; without it the platform's `fetch` does. */
  ORIGIN_BINDING: z.string().min(1).optional(),
  /** JSON list of upstreams; without it there is one, the origin at ORIGIN_URL. */
  UPSTREAMS: z.string().optional(),
  /** Pages that may call from a browser: origins, comma-separated, or `*`. */
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
  /** A line of JSON per request. */
  LOG_REQUESTS: z.stringbool().default(false),
  /** Hex SHA-256 of a key that stands for the built-in development tenant. Never set it in production. */
  DEVELOPMENT_KEY_SHA256: sha256.optional(),
  /** Hex SHA-256 of the first admin key, which makes the others. */
  ADMIN_KEY_SHA256: sha256.optional(),
  /** Larger bodies get 413. */
  MAX_BODY_BYTES: z.coerce
    .number()
    .int()
    .min(1)
    .default(4 * 1024 * 1024),
  /** A body that takes longer to arrive gets 408. */
  BODY_TIMEOUT_MS: milliseconds(30_000),
  /** Silence in a stream after which a comment line is written. */
  KEEP_ALIVE_MS: milliseconds(10_000),
  /** A generation that takes longer gets 504. */
  REQUEST_TIMEOUT_MS: milliseconds(600_000),
  /** An origin that has not answered at all by then gets given up with 504. */
  ACCEPT_TIMEOUT_MS: milliseconds(30_000),
  /** How long the origin's list of models is believed. */
  MODELS_TTL_MS: z.coerce.number().int().min(0).default(5_000),
  /** Largest prompts · max(n, best_of) of one request. */
  MAX_SEQUENCES: z.coerce.number().int().min(1).default(256),
  /** Where limits are decided: at the tenant's home, or from slices of its budget per data centre or continent. */
  LIMIT_REGIONS: z.enum(['off', 'colo', 'continent']).default('off'),
  /** A request without a sign of life for so long has lost its slot. */
  LEASE_MS: milliseconds(30_000),
});

/** The variables, parsed and complete. */
export type Settings = z.infer<typeof settings>;

type Variables = { readonly [Name in keyof Settings]?: string };

/** Bindings and variables as the platform hands them over. Variables are text; `parseSettings` gives them types. */
export interface Env extends Bindings, Variables {
  /** Shared with the origin; signs every request to it. UPSTREAMS may name others in its place. */
  readonly ORIGIN_SECRET?: string;
}

/** @throws Error naming the variable that is wrong; the deployment is at fault, no caller. */
export function parseSettings(env: Env): Settings {
  const parsed = settings.safeParse(env);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  throw new Error(`The variable ${issue?.path.join('.')} is wrong: ${issue?.message}`);
}

/** A secret that the configuration names. @throws Error when it is not there */
export function secretOf(env: Env, name: string): string {
  const value: unknown = Reflect.get(env, name);
  if (typeof value === 'string' && value !== '') return value;
  throw new Error(`The secret ${name} is not set.`);
}

/** A binding that the configuration names. @throws Error when it is not there, or nothing to fetch with */
export function fetcherOf(env: Env, name: string): Fetcher {
  const value: unknown = Reflect.get(env, name);
  if (typeof value === 'object' && value !== null && 'fetch' in value) return value as Fetcher;
  throw new Error(`There is no binding ${name} to fetch with.`);
}
