import { clientJson } from '@continuo/shared/framing.ts';
import type { OutgoingEvent } from './event-queue.ts';
import type { NumberedRecord } from './request-records.ts';

/** Returns a usage record as a CloudEvent (1.0, JSON) for metering and billing. Its id is the record's. */
export function usageEvent({ number, record }: NumberedRecord): OutgoingEvent {
  const { requestId, tenantId, keyId, model, usage, status, cost, priceVersion, startedAt } = record;
  const { promptTokens, cachedTokens, completionTokens } = usage;
  const body = clientJson({
    specversion: '1.0',
    id: requestId,
    source: 'continuo',
    type: 'continuo.request',
    subject: tenantId,
    time: new Date(startedAt).toISOString(),
    datacontenttype: 'application/json',
    data: {
      key: keyId,
      model,
      status,
      prompt_tokens: promptTokens,
      cached_tokens: cachedTokens,
      completion_tokens: completionTokens,
      cost_micros: cost,
      price_version: priceVersion === null ? null : String(priceVersion),
    },
  });
  return { position: number, id: requestId, body };
}
