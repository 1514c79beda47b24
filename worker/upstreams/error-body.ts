/**
 * Maximum length of one event, or of one JSON body, in characters. A longer one is malformed, because it would fill
 * the memory that all requests of an isolate share.
 */
export const MAX_MESSAGE_LENGTH = 16 * 1024 * 1024;

/**
 * Returns the JSON of an answer; null if it has none, is too long or breaks off.
 * @param prepare changes the text before it is parsed
 */
export async function readJsonBody(
  { body }: Response,
  prepare = (json: string): string => json,
): Promise<unknown> {
  if (body === null) return null;
  const decoder = new TextDecoder();
  let text = '';
  try {
    for await (const bytes of body) {
      text += decoder.decode(bytes, { stream: true });
      if (text.length > MAX_MESSAGE_LENGTH) return null;
    }
    return JSON.parse(prepare(text));
  } catch {
    return null;
  }
}
