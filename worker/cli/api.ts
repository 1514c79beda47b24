import * as z from 'zod';

/** A client of the admin API. */
export interface AdminApi {
  /** @throws CommandError with the server's message */
  call(method: 'GET' | 'POST' | 'PATCH' | 'DELETE', path: string, body?: unknown): Promise<AdminObject>;
  /** Reads all pages of a list. */
  list(path: string): Promise<AdminObject[]>;
}

export type AdminObject = Readonly<Record<string, unknown>>;

/** An error for the operator, shown without a stack. */
export class CommandError extends Error {}

const object = z.record(z.string(), z.unknown());
const failure = z.object({ error: z.object({ message: z.string() }) });
const list = z.object({ data: z.array(object), has_more: z.boolean() });

interface AdminAccess {
  /** Base address of the Worker. */
  readonly url: URL;
  readonly key: string;
  readonly fetch: typeof fetch;
}

/** @throws CommandError if the text is not an HTTP address */
export function readAddress(text: string): URL {
  const address = URL.parse(text);
  if (address && ['http:', 'https:'].includes(address.protocol)) return address;
  throw new CommandError(`'${text}' is not an address such as https://api.example.com.`);
}

/** Creates a client of the admin API. */
export function createAdminApi(access: AdminAccess): AdminApi {
  const parse = <T>(schema: z.ZodType<T>, answer: unknown): T => {
    const { data } = schema.safeParse(answer);
    if (data !== undefined) return data;
    throw new CommandError(`${access.url.origin} is not a Continuo server.`);
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
        throw new CommandError(
          `No server answers at ${address.origin}. Run npm start, or name another server in CONTINUO_URL.`,
        );
      });
    const answer: unknown = await response.json().catch(() => null);
    if (response.ok) return parse(object, answer);
    const parsed = failure.safeParse(answer);
    throw new CommandError(
      parsed.success ? parsed.data.error.message : `The server answered with status ${response.status}.`,
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
        const page = parse(list, await call('GET', `${path}${separator}${after}`));
        items.push(...page.data);
        if (!page.has_more) return items;
      }
    },
  };
}
