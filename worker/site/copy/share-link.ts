import { DIALECT_NAMES } from 'virtual:request-fields';
import { base64Of, bytesOfUnits } from '@continuo/shared/binary-text.ts';
import { isJsonObject } from '@continuo/shared/json-object.ts';
import type { Parameters } from '../api/request-field.ts';

/** A text and its parameters in the fragment of a link, which browsers never send. */

export interface SharedText {
  readonly text: string;
  /** Position of the insertion mark; null = none. */
  readonly mark: number | null;
  readonly parameters: Parameters;
  readonly model: string;
  /** Null = the tenant's own. */
  readonly dialect: string | null;
}

/** What a link brings. */
export interface Arrived extends SharedText {
  /** Day of the link, as YYYY-MM-DD. */
  readonly made: string;
}

/** Longer addresses are cut by chat programs and mail. */
const MAX_LINK = 16_000;
/** A short link can hold a very long text. */
const MAX_TEXT = 1_000_000;

const VERSION = 1;

/** What keys of Continuo look like. */
const KEY = /\bsk-[0-9A-Za-z]{12,16}-[0-9A-Za-z]{43,}/;

/** Returns the place of the first text that has a key; null if none has. */
function placeOfKey(value: unknown, keys: readonly string[], place: string): string | null {
  if (typeof value === 'string')
    return KEY.test(value) || keys.some((key) => value.includes(key)) ? place : null;
  if (typeof value !== 'object' || value === null) return null;
  for (const [name, member] of Object.entries(value)) {
    const inner = place === '' ? name : `${place}.${name}`;
    const inMember = placeOfKey(name, keys, inner) ?? placeOfKey(member, keys, inner);
    if (inMember !== null) return inMember;
  }
  return null;
}

/**
 * Returns the link to a text.
 * @param base address of the page without its fragment
 * @param keys of the visitor, which no link may have
 * @param day as YYYY-MM-DD
 */
export async function shareLink(
  base: string,
  { text, mark, parameters, model, dialect }: SharedText,
  keys: readonly string[],
  day: string,
): Promise<{ readonly link: string } | { readonly refused: string }> {
  const shared = { text, mark, parameters, model, dialect };
  const place = placeOfKey(shared, keys, '');
  if (place !== null)
    return { refused: `${place} has an API key, which a link would give away. Take the key out first.` };
  const packed = await deflated(JSON.stringify({ version: VERSION, made: day, ...shared }));
  const link = `${base}#/share=${packed}`;
  if (link.length <= MAX_LINK) return { link };
  const limit = `${MAX_LINK.toLocaleString('en')} characters`;
  return {
    refused: `The link would have ${link.length.toLocaleString('en')} characters; the limit is ${limit}. Shorten the text, or copy the request as code.`,
  };
}

/**
 * Reads what follows `#/share=`. Returns null if it is no text of a link.
 * @param fields parameters that a link may set
 */
export async function readShared(packed: string, fields: readonly string[]): Promise<Arrived | null> {
  try {
    return arrivedOf(JSON.parse(await inflated(packed)), fields);
  } catch {
    return null;
  }
}

/** Takes only what the page itself would send: anyone can make a link. */
function arrivedOf(value: unknown, fields: readonly string[]): Arrived | null {
  if (!isJsonObject(value) || value.version !== VERSION) return null;
  const { text, mark, parameters, model, dialect, made } = value;
  if (typeof text !== 'string' || typeof model !== 'string' || !isJsonObject(parameters)) return null;
  const isPlace = Number.isSafeInteger(mark) && (mark as number) >= 0 && (mark as number) <= text.length;
  return {
    text,
    model,
    mark: isPlace ? (mark as number) : null,
    parameters: Object.fromEntries(Object.entries(parameters).filter(([name]) => fields.includes(name))),
    dialect: DIALECT_NAMES.find((name) => name === dialect) ?? null,
    made: /^\d{4}-\d\d-\d\d$/.test(String(made)) ? String(made) : '',
  };
}

const piped = (bytes: Uint8Array<ArrayBuffer>, through: CompressionStream | DecompressionStream) =>
  new Blob([bytes]).stream().pipeThrough(through);

async function deflated(text: string): Promise<string> {
  const stream = piped(new TextEncoder().encode(text), new CompressionStream('deflate-raw'));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  return base64Of(bytes).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}

/** @throws if it is not base64url, not deflated, no UTF-8, or too long */
async function inflated(packed: string): Promise<string> {
  const bytes = bytesOfUnits(atob(packed.replaceAll('-', '+').replaceAll('_', '/')));
  const decoder = new TextDecoder('utf-8', { fatal: true });
  const reader = piped(bytes, new DecompressionStream('deflate-raw')).getReader();
  let text = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return text + decoder.decode();
    text += decoder.decode(value, { stream: true });
    if (text.length <= MAX_TEXT) continue;
    await reader.cancel();
    throw new RangeError('The text of the link is too long.');
  }
}
