import { hash, timingSafeEqual } from 'node:crypto';
import * as z from 'zod';

/** The link that a local start prints: its code is worth the key once, so no address ever has the key. */
export const pageLink = z.object({ code: z.string(), key: z.string() });

export type PageLink = z.infer<typeof pageLink>;

const exchangeBody = z.object({ code: z.string() });

const isEqual = (a: string, b: string): boolean =>
  timingSafeEqual(Buffer.from(hash('sha256', a)), Buffer.from(hash('sha256', b)));

/** Returns a handler that gives the key to the first request with the code. All others get 404. */
export function keyExchange({ code, key }: PageLink): (request: Request) => Promise<Response> {
  let isUsed = false;
  return async (request) => {
    const { data } = exchangeBody.safeParse(await request.json().catch(() => null));
    if (isUsed || data === undefined || !isEqual(data.code, code)) return new Response(null, { status: 404 });
    isUsed = true;
    return Response.json({ key });
  };
}
