import type { GenerationEvent } from '../../shared/generation.ts';
import { malformed } from './upstream-errors.ts';

type Fields = Readonly<Record<string, unknown>>;

const isObject = (value: unknown): value is Fields => typeof value === 'object' && value !== null;
const isCount = (value: unknown): boolean => Number.isInteger(value) && (value as number) >= 0;
const isUsage = (value: unknown): boolean =>
  isObject(value) &&
  isCount(value.promptTokens) &&
  isCount(value.cachedTokens) &&
  isCount(value.completionTokens);

/** What the relay relies on, per type of event. A whole schema per token would cost more than the relay itself. */
const CHECKS: Readonly<Record<GenerationEvent['type'], (event: Fields) => boolean>> = {
  accepted: (event) => typeof event.model === 'string' && Array.isArray(event.promptTokens),
  started: (event) => isCount(event.prompt) && isCount(event.cachedTokens),
  prompt: (event) => isCount(event.prompt) && typeof event.text === 'string' && Array.isArray(event.ids),
  token: (event) =>
    isCount(event.choice) && typeof event.text === 'string' && isCount(event.completionTokens),
  finish: (event) =>
    isCount(event.choice) &&
    (event.reason === 'stop' || event.reason === 'length') &&
    isCount(event.completionTokens),
  done: (event) => isUsage(event.usage) && isObject(event.timings),
  error: (event) => typeof event.code === 'string' && typeof event.message === 'string',
};

/**
 * One NDJSON line as an event; only its outline is checked, since the origin is ours and this runs per token.
 * @throws ApiError upstream_error for anything that is no event
 */
export function parseEvent(line: string): GenerationEvent {
  let event: unknown;
  try {
    event = JSON.parse(line);
  } catch {
    throw malformed();
  }
  if (!isObject(event) || typeof event.type !== 'string' || !Object.hasOwn(CHECKS, event.type))
    throw malformed();
  if (!CHECKS[event.type as GenerationEvent['type']](event)) throw malformed();
  return event as GenerationEvent;
}
