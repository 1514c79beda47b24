import { MOST_HELD } from './memory-bound.ts';

/** The JSON of an answer that is an error; null where there is none, or it never ends. */
export async function errorBody({ body }: Response): Promise<unknown> {
  if (body === null) return null;
  const decoder = new TextDecoder();
  let text = '';
  try {
    for await (const bytes of body) {
      text += decoder.decode(bytes, { stream: true });
      if (text.length > MOST_HELD) return null;
    }
    return JSON.parse(text);
  } catch {
    return null;
  }
}
