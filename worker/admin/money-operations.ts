import { askTenant, callObject } from '@continuo/limits/limiter-client.ts';
import { listOf, pageQuery } from '@continuo/shared/account-fields.ts';
import { documented } from '@continuo/shared/documented.ts';
import { ApiError } from '@continuo/shared/errors.ts';
import { always, characters, integer, unixSeconds } from '@continuo/shared/json-fields.ts';
import { retry } from '@continuo/shared/retry.ts';
import * as z from 'zod';
import type { RequestContext } from '../http/request-context.ts';
import type { EntryMaker, Operation } from '../operations/operation.ts';
import { insertPrice, listPrices, type ModelPrice } from '../prices/price-store.ts';
import { type Credit, insertCredits, listCredits, readCredit } from '../tenants/credit-store.ts';
import { readTenant } from '../tenants/tenant-store.ts';
import { existing, page } from './admin-objects.ts';
import { adminOperation } from './admin-operation.ts';
import { priceWarning } from './price-warning.ts';
import { unavailable } from './usage-operations.ts';

/** Prices of models, and prepaid balances of tenants. All money is in integer micro-units of one currency. */

/** A request of a billion tokens at this price still has an exact cost. */
const MAX_PRICE = 1e11;
const MAX_CREDIT = 1e15;

const price = (tokens: string) => integer(0, MAX_PRICE).describe(`Micro-units per million ${tokens} tokens.`);
const factor = (tier: string) =>
  integer(0, 10_000).describe(`Factor of ${tier}, in thousandths; 1000 = the same price.`);
const model = characters(200, z.string().min(1)).describe('Id of the model, not an alias.');
const seconds = z.int();

const priceBody = z.strictObject({
  model,
  prompt_micros: price('prompt'),
  cached_prompt_micros: price('cached prompt')
    .optional()
    .describe('Micro-units per million prompt tokens from the prefix cache. Default: prompt_micros.'),
  completion_micros: price('completion'),
  flex_permille: factor('service_tier flex').default(1_000),
  batch_permille: factor('batches').default(1_000),
  valid_from: unixSeconds.optional().describe('Unix seconds, not in the past. Default: now.'),
});
priceBody.register(documented, {
  example: { model: 'org/model', prompt_micros: 500_000, completion_micros: 1_500_000 },
});
const priceObject = z.object({
  object: always('price'),
  id: z.string().describe('Version of the price. Usage records name it.'),
  ...priceBody.shape,
  cached_prompt_micros: price('cached prompt'),
  valid_from: seconds.describe('Unix seconds.'),
});

const showPrice = (stored: ModelPrice): z.infer<typeof priceObject> => ({
  object: 'price',
  id: String(stored.version),
  model: stored.model,
  prompt_micros: stored.prompt,
  cached_prompt_micros: stored.cachedPrompt,
  completion_micros: stored.completion,
  flex_permille: stored.flexFactor,
  batch_permille: stored.batchFactor,
  valid_from: Math.floor(stored.validFrom / 1000),
});

const invalid = (param: string, message: string): ApiError =>
  new ApiError('invalid_value', `Invalid '${param}': ${message}`, { param });

/** Ids of prices are numbers. */
const priceQuery = pageQuery.extend({
  after: z
    .string()
    .regex(/^\d*$/, 'expected the last id of a page')
    .default('')
    .describe('Last id of the previous page.'),
  model: model.optional().describe('Only prices of this model.'),
});

async function setPrice(
  body: z.infer<typeof priceBody>,
  entry: EntryMaker,
  context: RequestContext,
): Promise<ModelPrice> {
  const now = context.now();
  const cachedPrompt = body.cached_prompt_micros ?? body.prompt_micros;
  if (cachedPrompt > body.prompt_micros)
    throw invalid('cached_prompt_micros', 'it must not be above prompt_micros.');
  const validFrom = body.valid_from === undefined ? now : body.valid_from * 1000;
  if (validFrom < now - 1000)
    throw invalid('valid_from', 'the time is in the past. Past requests keep their price.');
  const { flex_permille: flexFactor, batch_permille: batchFactor } = body;
  const terms = { prompt: body.prompt_micros, cachedPrompt, completion: body.completion_micros };
  const price = { model: body.model, validFrom, ...terms, flexFactor, batchFactor };
  const stored = await insertPrice(context.env.DB, price, entry(body.model, null, body));
  context.prices.forget();
  return stored;
}

const creditBody = z.strictObject({
  tenant: z.string().min(1).describe('Id of the tenant.'),
  id: z
    .string()
    .regex(/^[\w.:-]{1,100}$/, 'expected 1 to 100 letters, digits and characters of _.:-')
    .describe(
      'Unique per tenant, for example the number of a payment. An entry that is sent twice counts once.',
    ),
  micros: integer(-MAX_CREDIT, MAX_CREDIT).describe(
    'Micro-units of the currency; negative for a correction.',
  ),
  note: characters(500).default('').describe('Text for people.'),
});
creditBody.register(documented, { example: { tenant: 'acme', id: 'invoice-17', micros: 50_000_000 } });
const creditObject = z.object({
  object: always('credit'),
  ...creditBody.shape,
  note: z.string().describe('Text for people.'),
  created_at: seconds.describe('Time of the entry in Unix seconds.'),
  warning: z.string().optional().describe('Served models without a price, which the balance does not limit.'),
});
const creditQuery = pageQuery.extend({ tenant: creditBody.shape.tenant });

const showCredit = ({ tenantId, id, micros, note, createdAt }: Credit): z.infer<typeof creditObject> => ({
  object: 'credit',
  tenant: tenantId,
  id,
  micros,
  note,
  created_at: Math.floor(createdAt / 1000),
});

/** Id of the entry for what a tenant had spent before it got a prepaid balance. */
const OPENING = 'opening';

async function addCredit(
  body: z.infer<typeof creditBody>,
  entryOf: EntryMaker,
  context: RequestContext,
): Promise<Credit> {
  const { tenant, id, micros, note } = body;
  const { env, now, keys, backoff } = context;
  existing(await readTenant(env.DB, tenant), 'tenant', tenant);
  if (id === OPENING) throw invalid('id', `'${OPENING}' is reserved. Choose another id.`);
  const entry = { id, micros, note, createdAt: now() };
  const isFirst = (await readCredit(env.DB, tenant)) === null;
  const opening = isFirst ? [await openingOf(tenant, context)] : [];
  const stored = await insertCredits(env.DB, tenant, [...opening, entry], entryOf(id, tenant, body));
  keys.forgetTenant(tenant);
  if (stored === null)
    throw invalid('micros', 'the sum of all entries must stay within 2^53 - 1 micro-units.');
  const paid = await readCredit(env.DB, tenant);
  if (paid)
    await retry(() => callObject(context, tenant, (object) => object.paid(paid.micros, paid.at)), backoff);
  if (stored.micros === micros) return stored;
  throw new ApiError('conflict', `The entry '${id}' exists with ${stored.micros} micro-units.`, {
    param: 'id',
  });
}

const balanceObject = z.object({
  object: always('balance'),
  tenant: z.string().describe('Id of the tenant.'),
  paid_micros: z.int().nullable().describe('Sum of all entries; null = no prepaid balance.'),
  spent_micros: z.int().describe('Cost of all requests that have ended, in micro-units.'),
  balance_micros: z.int().nullable().describe('What is left, in micro-units; null = no prepaid balance.'),
});

async function showBalance(tenant: string, context: RequestContext): Promise<z.infer<typeof balanceObject>> {
  existing(await readTenant(context.env.DB, tenant), 'tenant', tenant);
  const [paid, use] = await Promise.all([
    readCredit(context.env.DB, tenant),
    askTenant(context, tenant, { kind: 'use', keyId: '' }).catch(unavailable),
  ]);
  const spent = use.tenant.spentEver;
  return {
    object: 'balance',
    tenant,
    paid_micros: paid?.micros ?? null,
    spent_micros: spent,
    balance_micros: paid && paid.micros - spent,
  };
}

/** What was spent before the first entry does not reduce the balance. */
async function openingOf(tenantId: string, context: RequestContext) {
  const { tenant } = await askTenant(context, tenantId, { kind: 'use', keyId: '' });
  const note = 'Spent before the first entry.';
  return { id: OPENING, micros: tenant.spentEver, note, createdAt: context.now() };
}

export const MONEY_OPERATIONS: readonly Operation[] = [
  adminOperation('GET', '/prices', {
    summary: 'List the prices of all models or of one model, also past and future ones',
    query: priceQuery,
    response: listOf(priceObject),
    run: async ({ query }, { env }) =>
      page(
        await listPrices(env.DB, query.model ?? null, Number(query.after), query.limit + 1),
        query.limit,
        showPrice,
      ),
  }),
  adminOperation('POST', '/prices', {
    summary: 'Set the price of a model from a time on; known everywhere within one minute',
    status: 201,
    roles: ['billing'],
    body: priceBody,
    response: priceObject,
    run: async ({ body, entry }, context) => showPrice(await setPrice(body, entry, context)),
  }),
  adminOperation('GET', '/credits', {
    summary: "List the entries of a tenant's prepaid balance",
    query: creditQuery,
    response: listOf(creditObject),
    run: async ({ query }, { env }) =>
      page(await listCredits(env.DB, query.tenant, query.after, query.limit + 1), query.limit, showCredit),
  }),
  adminOperation('GET', '/balances/{id}', {
    summary: 'Show the prepaid balance of a tenant; the id is that of the tenant',
    response: balanceObject,
    run: ({ id }, context) => showBalance(id, context),
  }),
  adminOperation('POST', '/credits', {
    summary: 'Add to the prepaid balance of a tenant, which begins with the first entry',
    status: 201,
    roles: ['billing'],
    body: creditBody,
    response: creditObject,
    async run({ body, entry }, context) {
      const credit = showCredit(await addCredit(body, entry, context));
      const warning = await priceWarning({ balance_micros: credit.micros }, context);
      return { ...credit, ...(warning !== undefined && { warning }) };
    },
  }),
];
