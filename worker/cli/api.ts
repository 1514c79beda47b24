import * as z from 'zod';

/** A client of the admin API. */
export interface AdminApi {
  /** @throws CommandError with the server's own message */
  call(method: 'GET' | 'POST' | 'PATCH' | 'DELETE', path: string, body?: unknown): Promise<AdminObject>;
  /** All pages of a list. */
  list(path: string): Promise<AdminObject[]>;
}

export type AdminObject = Readonly<Record<string, unknown>>;

/** Something the operator should read; shown without a stack. */
export class CommandError extends Error {}

const object = z.record(z.string(), z.unknown());
const failure = z.object({ error: z.object({ message: z.string() }) });
const list = z.object({ data: z.array(object), has_more: z.boolean() });

export interface Access {
  /** Base address of the Worker. */
  readonly url: URL;
  readonly key: string;
  readonly fetch: typeof fetch;
}

/** @throws CommandError for what is no address of a Worker */
export function readAddress(text: string): URL {
  const address = URL.parse(text);
  if (address && ['http:', 'https:'].includes(address.protocol)) return address;
  throw new CommandError(`'${text}' is no address such as https://api.example.com.`);
}

export function createAdminApi(access: Access): AdminApi {
  const understood = <T>(schema: z.ZodType<T>, answer: unknown): T => {
    const { data } = schema.safeParse(answer);
    if (data !== undefined) return data;
    throw new CommandError(`What answers at ${access.url.origin} is no Continuo.`);
  };
  const call: AdminApi['call'] = async (method, path, body) => {
    const address = new URL(`/admin/v1${path}`, access.url);
    const response = await access
      .fetch(address, {
        method,
        headers: { authorization: `Bearer ${access.key}`, 'content-type': 'application/json' },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      })
      .catch(() => {
        throw new CommandError(`Nothing answers at ${address.origin}.`);
      });
    const answer: unknown = await response.json().catch(() => null);
    if (response.ok) return understood(object, answer);
    const told = failure.safeParse(answer);
    throw new CommandError(
      told.success ? told.data.error.message : `The server answered ${response.status}.`,
    );
  };
  return {
    call,
    async list(path) {
      const items: AdminObject[] = [];
      for (;;) {
        const last = items.at(-1)?.id;
        const after = typeof last === 'string' ? `after=${encodeURIComponent(last)}` : '';
        const separator = path.includes('?') ? '&' : '?';
        const page = understood(list, await call('GET', `${path}${separator}${after}`));
        items.push(...page.data);
        if (!page.has_more) return items;
      }
    },
  };
}
