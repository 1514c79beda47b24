import type { RunningWorker } from './worker.ts';

/** Reads the answers in the served OpenAPI document. */

interface Documented {
  readonly description: string;
  readonly headers?: Readonly<Record<string, unknown>>;
  readonly content: Readonly<Record<string, unknown>>;
}

export type Responses = Readonly<Record<string, Documented>>;

type Paths = Readonly<Record<string, Readonly<Record<string, { readonly responses: Responses }>>>>;

export async function documentedPaths(worker: RunningWorker): Promise<Paths> {
  return ((await (await fetch(`${worker.url}/openapi.json`)).json()) as { paths: Paths }).paths;
}

/** Headers that the document need not describe: those of HTTP connections, caches and security. */
const ORDINARY =
  /^(content-(type|length|security-policy)|transfer-encoding|connection|cache-control|vary|access-control-.*|x-accel-buffering|x-content-type-options|referrer-policy|cross-origin-resource-policy|strict-transport-security)$/;

/** Returns the parts of an answer that the document does not describe. */
export function undocumented(responses: Responses, answer: Response): string[] {
  const told = responses[answer.status];
  if (!told) return [`status ${answer.status}`];
  const type = answer.headers.get('content-type')?.split(';')[0] ?? 'none';
  return [
    ...(type in told.content ? [] : [`content type ${type}`]),
    ...[...answer.headers.keys()]
      .filter((name) => !ORDINARY.test(name) && !(name in (told.headers ?? {})))
      .map((name) => `header ${name}`),
  ];
}

/** Returns the paths of all properties of a JSON Schema that have no description. */
export function undescribedFields(schema: unknown, path: string): string[] {
  if (typeof schema !== 'object' || schema === null) return [];
  const { properties, ...rest } = schema as Readonly<Record<string, unknown>>;
  const fields = Object.entries((properties ?? {}) as Readonly<Record<string, { description?: unknown }>>);
  return [
    ...fields.flatMap(([name, field]) => [
      ...(typeof field.description === 'string' && field.description.length > 5 ? [] : [`${path}.${name}`]),
      ...undescribedFields(field, `${path}.${name}`),
    ]),
    ...Object.values(rest).flatMap((part) => undescribedFields(part, path)),
  ];
}

/** Returns the path as the document writes it; null for an unknown path. */
export function documentedPath(paths: Paths, url: string): string | null {
  const { pathname } = new URL(url);
  const fits = (path: string) => new RegExp(`^${path.replaceAll(/\{\w+\}/g, '.+')}/?$`).test(pathname);
  return Object.keys(paths).find(fits) ?? null;
}
