import { askTenant, callObject } from '@continuo/limits/limiter-client.ts';
import { listOf, pageQuery } from '@continuo/shared/account-fields.ts';
import { documented } from '@continuo/shared/documented.ts';
import { ApiError } from '@continuo/shared/errors.ts';
import { always } from '@continuo/shared/json-fields.ts';
import * as z from 'zod';
import { tenantSecret } from '../delivery/delivery.ts';
import { targetProblem } from '../delivery/target.ts';
import type { RequestContext } from '../http/request-context.ts';
import type { EntryMaker, Operation } from '../operations/operation.ts';
import { runAudited } from '../tenants/audit-log.ts';
import { readTenant } from '../tenants/tenant-store.ts';
import { readWebhook, setWebhook } from '../tenants/webhook-store.ts';
import { existing, page } from './admin-objects.ts';
import { adminOperation } from './admin-operation.ts';

/** Webhooks of tenants, and events that an endpoint has refused too often. */

const tenant = z.string().min(1).describe('Id of the tenant.');
const webhookBody = z.strictObject({
  tenant,
  url: z.string().max(2_000).nullable().describe('Address that gets the alerts of the tenant; null = none.'),
});
webhookBody.register(documented, {
  example: { tenant: 'acme', url: 'https://hooks.example.com/continuo' },
});
const webhookObject = z.object({
  object: always('webhook'),
  ...webhookBody.shape,
  secret: z.string().nullable().describe('Verifies the signatures of the events; null without an address.'),
});

const eventObject = z.object({
  object: always('event'),
  id: z.string().describe('Id of the event.'),
  channel: z.enum(['alert', 'usage']).describe('alert: to the webhook; usage: to the billing endpoint.'),
  event: z.unknown().describe('The event as it is sent.'),
});
const eventQuery = pageQuery.extend({ tenant });
const replayed = z.object({
  object: always('replay'),
  events: z.int().describe('Number of events that are sent again.'),
});

async function showWebhook(
  tenantId: string,
  { env, settings }: RequestContext,
): Promise<z.infer<typeof webhookObject>> {
  existing(await readTenant(env.DB, tenantId), 'tenant', tenantId);
  const url = await readWebhook(env.DB, tenantId);
  const { WEBHOOK_SECRET: secret } = settings;
  const shown = url === null || secret === undefined ? null : await tenantSecret(secret, tenantId);
  return { object: 'webhook', tenant: tenantId, url, secret: shown };
}

async function changeWebhook(
  body: z.infer<typeof webhookBody>,
  entry: EntryMaker,
  context: RequestContext,
): Promise<z.infer<typeof webhookObject>> {
  const { tenant: tenantId, url } = body;
  const { env, settings } = context;
  existing(await readTenant(env.DB, tenantId), 'tenant', tenantId);
  const problem = url === null ? null : targetProblem(url, settings.ENVIRONMENT === 'development');
  if (problem !== null) throw new ApiError('invalid_value', `Invalid 'url': ${problem}`, { param: 'url' });
  if (url !== null && settings.WEBHOOK_SECRET === undefined) {
    const message =
      "Invalid 'url': events cannot be signed. Set the secret WEBHOOK_SECRET of the Worker first.";
    throw new ApiError('invalid_value', message, { param: 'url' });
  }
  // Path and query of such an address are often secret.
  const origin = url && new URL(url).origin;
  await setWebhook(env.DB, tenantId, url, entry(tenantId, tenantId, { tenant: tenantId, url: origin }));
  return showWebhook(tenantId, context);
}

export const EVENT_OPERATIONS: readonly Operation[] = [
  adminOperation('GET', '/webhooks/{id}', {
    summary: 'Show the webhook of a tenant with its secret',
    roles: [],
    response: webhookObject,
    run: ({ id }, context) => showWebhook(id, context),
  }),
  adminOperation('POST', '/webhooks', {
    summary: 'Set or remove the webhook of a tenant',
    status: 201,
    body: webhookBody,
    response: webhookObject,
    run: ({ body, entry }, context) => changeWebhook(body, entry, context),
  }),
  adminOperation('GET', '/events', {
    summary:
      'List the events of a tenant that their endpoint has refused too often, by channel, oldest first',
    query: eventQuery,
    response: listOf(eventObject),
    async run({ query }, context) {
      const { tenant: id, limit, after } = query;
      // A call would create an object for a tenant that does not exist.
      existing(await readTenant(context.env.DB, id), 'tenant', id);
      const dead = await askTenant(context, id, { kind: 'deadEvents', limit: limit + 1, after });
      return page(dead, limit, ({ id, channel, body }) => ({
        object: 'event',
        id,
        channel,
        event: JSON.parse(body) as unknown,
      }));
    },
  }),
  adminOperation('POST', '/events/{id}/replay', {
    summary: 'Send all these events of a tenant again; the id is that of the tenant',
    roles: ['billing'],
    response: replayed,
    async run({ id, entry }, context) {
      existing(await readTenant(context.env.DB, id), 'tenant', id);
      await runAudited(context.env.DB, [], entry(id, id));
      return { object: 'replay', events: await callObject(context, id, (object) => object.replayEvents()) };
    },
  }),
];
