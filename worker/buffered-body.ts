import { ApiError } from '../shared/errors.ts';
import type { RequestContext } from './context.ts';

/** A request's body as it is, for those who pass the request on; whoever handles it checks it once more. @throws ApiError 413 */
export async function bodyText(request: Request, { settings }: RequestContext): Promise<string> {
  const { MAX_BODY_BYTES } = settings;
  const claimed = Number(request.headers.get('content-length') ?? 0);
  const text = claimed > MAX_BODY_BYTES ? null : await request.text();
  if (text !== null && text.length <= MAX_BODY_BYTES) return text;
  throw new ApiError(
    'request_too_large',
    `The request body is larger than the limit of ${MAX_BODY_BYTES} bytes.`,
  );
}
