import { listOf, pageQuery } from '@continuo/shared/account-fields.ts';
import { originActivity } from '@continuo/shared/activity.ts';
import { documented } from '@continuo/shared/documented.ts';
import { ApiError } from '@continuo/shared/errors.ts';
import { always } from '@continuo/shared/json-fields.ts';
import * as z from 'zod';
import type { RequestContext } from '../http/request-context.ts';
import type { EntryMaker, Operation } from '../operations/operation.ts';
import { upstreamBody, upstreamName } from '../upstreams/upstream-config.ts';
import { faultOf, upstreamsOfVariables } from '../upstreams/upstream-directory.ts';
import {
  readUpstreams,
  removeUpstream,
  type StoredUpstream,
  setUpstream,
  storedForm,
} from '../upstreams/upstream-store.ts';
import { existing, page } from './admin-objects.ts';
import { adminOperation } from './admin-operation.ts';

/** The list of upstreams, which takes the place of the variable UPSTREAMS with its first change. */

upstreamBody.register(documented, { example: { kind: 'origin', url: 'https://fra-2.example.com' } });

const fields = z.record(z.string(), z.unknown());

const upstreamObject = z.object({
  object: always('upstream'),
  id: z.string().describe('Name of the upstream.'),
  source: z.enum(['database', 'variable']).describe('Where it is from; `variable` until the first change.'),
  fault: z
    .string()
    .nullable()
    .describe('Why it gets no requests, such as a missing secret; null = it gets some.'),
  breaker: z
    .enum(['closed', 'open', 'half-open'])
    .describe('Its circuit breaker where this was answered; open = other upstreams are tried first.'),
  failures: z.int().describe('Failures since the last success, where this was answered.'),
  running: z.int().describe('Requests that run there from where this was answered.'),
  config: fields.nullable().describe('As in the variable UPSTREAMS; null = it is not JSON.'),
});

const activityObject = z.object({
  object: always('activity'),
  id: z.string().describe('Name of the upstream.'),
  fault: z.string().nullable().describe('Why it did not answer; null = it has, or is no origin.'),
  ...originActivity.shape,
});

interface ListedUpstream extends StoredUpstream {
  readonly source: 'database' | 'variable';
}

/** Returns the list that is in effect. */
async function upstreamsOf({ env, settings, now }: RequestContext): Promise<readonly ListedUpstream[]> {
  const stored = (await readUpstreams(env.DB, now())).filter(({ removedAt }) => removedAt === null);
  if (stored.length > 0) return stored.map((upstream) => ({ ...upstream, source: 'database' as const }));
  return upstreamsOfVariables(settings).map((upstream) => ({ ...upstream, source: 'variable' as const }));
}

/** Returns the fields without the name; null if the text is not a JSON object. */
function configOf(text: string): z.infer<typeof fields> | null {
  try {
    const { name, ...config } = fields.parse(JSON.parse(text));
    return config;
  } catch {
    return null;
  }
}

async function shownBy({ settings, env, catalogue }: RequestContext) {
  const current = await catalogue;
  return (upstream: ListedUpstream): z.infer<typeof upstreamObject> => ({
    object: 'upstream',
    id: upstream.name,
    source: upstream.source,
    fault: faultOf(upstream, settings, env),
    ...current.conditionOf(upstream.name),
    config: configOf(upstream.config),
  });
}

async function set(
  name: string,
  body: z.infer<typeof upstreamBody>,
  entry: EntryMaker,
  context: RequestContext,
): Promise<ListedUpstream> {
  const { env, settings, upstreams } = context;
  if (!upstreamName.safeParse(name).success) {
    const message = `Invalid name '${name.slice(0, 100)}': expected 1 to 64 letters, digits, dots, hyphens or underscores.`;
    throw new ApiError('invalid_value', message, { param: 'name' });
  }
  const upstream = storedForm({ ...body, name });
  const fault = faultOf(upstream, settings, env);
  if (fault !== null) {
    const message = `The upstream '${name}' cannot be used: ${fault} Set what is missing first, for example with npx wrangler secret put.`;
    throw new ApiError('invalid_value', message, { param: 'name' });
  }
  await setUpstream(env.DB, upstreamsOfVariables(settings), upstream, entry(name, null, body));
  upstreams.forget();
  return { ...upstream, source: 'database' };
}

async function remove(name: string, entry: EntryMaker, context: RequestContext): Promise<ListedUpstream> {
  const { env, settings, upstreams } = context;
  const listed = await upstreamsOf(context);
  const upstream = existing(listed.find((upstream) => upstream.name === name) ?? null, 'upstream', name);
  const others = listed.filter(
    (upstream) => upstream.name !== name && faultOf(upstream, settings, env) === null,
  );
  const isRemoved =
    others.length > 0 &&
    (await removeUpstream(env.DB, upstreamsOfVariables(settings), name, entry(name, null)));
  if (!isRemoved) {
    const message = `The upstream '${name}' is the only one that can be used. Set another one first.`;
    throw new ApiError('conflict', message);
  }
  upstreams.forget();
  return upstream;
}

export const UPSTREAM_OPERATIONS: readonly Operation[] = [
  adminOperation('GET', '/upstreams', {
    summary: 'List the upstreams, with those that cannot be used and why',
    query: pageQuery,
    response: listOf(upstreamObject),
    async run({ query: { after, limit } }, context) {
      const listed = await upstreamsOf(context);
      const sorted = listed.toSorted((a, b) => (a.name < b.name ? -1 : 1));
      return page(
        sorted.filter(({ name }) => name > after).slice(0, limit + 1),
        limit,
        await shownBy(context),
      );
    },
  }),
  adminOperation('GET', '/activity', {
    summary: 'Show the models, slots and queues of the origins, with their tokens of the last hour',
    response: listOf(activityObject),
    async run({ request }, { catalogue }) {
      const all = await (await catalogue).activity(request.signal);
      return page(all, all.length, ({ name, activity, failure }) => ({
        object: 'activity' as const,
        id: name,
        fault: failure,
        ...(activity ?? { bounds: [], models: [] }),
      }));
    },
  }),
  adminOperation('PUT', '/upstreams/{id}', {
    summary: 'Add or replace an upstream; known everywhere within one minute',
    body: upstreamBody,
    response: upstreamObject,
    run: async ({ id, body, entry }, context) =>
      (await shownBy(context))(await set(id, body, entry, context)),
  }),
  adminOperation('DELETE', '/upstreams/{id}', {
    summary: 'Remove an upstream: new requests go elsewhere within one minute, running ones end there',
    response: upstreamObject,
    run: async ({ id, entry }, context) => (await shownBy(context))(await remove(id, entry, context)),
  }),
];
