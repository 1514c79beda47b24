import type { Driver } from './engine-driver.ts';
import { submission } from './submissions.ts';
import { transcribe } from './transcript.ts';
import { BOS, VOCABULARY } from './vocabulary.ts';

export const CHUNK = 8;
export const shape = (slots: number) => ({
  slots,
  contextLength: 4096,
  prefillChunk: CHUNK,
  vocabularySize: VOCABULARY,
  minRows: 1,
});

/** Runs until maxTokens for every sampled text. */
export const endless = (requestId: string, maxTokens: number, tenantId = 'tenant') =>
  submission({
    requestId,
    tenantId,
    prompts: [{ tokens: Int32Array.of(BOS, 1), maxTokens }],
    ignoreEos: true,
  });

export const longPrompt = (requestId: string, length: number, tenantId = 'tenant') =>
  submission({
    requestId,
    tenantId,
    cacheNamespace: requestId,
    prompts: [{ tokens: Int32Array.from({ length }, (_, at) => at % 10), maxTokens: 4 }],
    ignoreEos: true,
  });

export const ends = (driver: Driver, requestId: string) => transcribe(driver.eventsOf(requestId), 1).end;
export const tokensSoFar = (driver: Driver, requestId: string) =>
  driver.eventsOf(requestId).filter(({ type }) => type === 'token').length;
