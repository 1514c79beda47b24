import { timingSafeEqual } from 'node:crypto';
import * as z from 'zod';

/** The link that a local start prints: its code is worth the key once, so no address ever has the key. */
export const pageLink = z.object({ code: z.string(), key: z.string() });

export type PageLink = z.infer<typeof pageLink>;

const question = z.object({ code: z.string() });

const isEqual = (a: string, b: string): boolean =>
  a.length === b.length && timingSafeEqual(Buffer.from(a), Buffer.from(b));

/** Returns what answers the first request that has the code with the key, and all others with 404. */
export function keyExchange({ code, key }: PageLink): (request: Request) => Promise<Response> {
  let isUsed = false;
  return async (request) => {
    const { data } = question.safeParse(await request.json().catch(() => null));
    if (isUsed || data === undefined || !isEqual(data.code, code)) return new Response(null, { status: 404 });
    isUsed = true;
    return Response.json({ key });
  };
}
