import { ApiError } from '@continuo/shared/errors.ts';
import type * as z from 'zod';
import type { RequestContext } from '../http/request-context.ts';
import type { KeyDirectory } from '../tenants/key-directory.ts';
import { found, page } from './admin-objects.ts';
import { type AdminOperation, operation } from './admin-operation.ts';
import { listOf, pageQuery } from './admin-schemas.ts';

/** A kind of record with the operations list, create, show and change. */
interface RecordKind<Stored extends { readonly id: string }, Body, Patch> {
  readonly name: string;
  readonly body: z.ZodType<Body>;
  readonly patch: z.ZodType<Patch>;
  /** Examples of request bodies. */
  readonly examples: {
    readonly body: Readonly<Record<string, unknown>>;
    readonly patch: Readonly<Record<string, unknown>>;
  };
  readonly object: z.ZodType;
  readonly show: (record: Stored) => unknown;
  /** States when a change becomes effective; part of the summary. */
  readonly effect: string;
  list(db: D1Database, after: string, limit: number): Promise<Stored[]>;
  read(db: D1Database, id: string): Promise<Stored | null>;
  /** Returns false if the id is taken. */
  insert(db: D1Database, record: Stored): Promise<boolean>;
  create(body: Body, context: RequestContext): Promise<Stored>;
  /** Returns the changed record; null if there is none. */
  change(id: string, patch: Patch, context: RequestContext): Promise<Stored | null>;
  /** Removes cached keys that depend on the record. */
  forget(changed: Stored, keys: KeyDirectory): void;
}

/** Returns the four admin operations (list, create, show, change) of one kind of record. */
export function recordOperations<Stored extends { readonly id: string }, Body, Patch>(
  kind: RecordKind<Stored, Body, Patch>,
): readonly AdminOperation[] {
  const { name, object, show } = kind;
  return [
    operation({
      method: 'GET',
      path: `/${name}s`,
      summary: `List ${name}s`,
      status: 200,
      query: pageQuery,
      response: listOf(object),
      run: async ({ query }, { env }) =>
        page(await kind.list(env.DB, query.after, query.limit + 1), query.limit, show),
    }),
    operation({
      method: 'POST',
      path: `/${name}s`,
      summary: `Create a ${name}`,
      status: 201,
      body: kind.body,
      example: kind.examples.body,
      response: object,
      async run({ body }, context) {
        const record = await kind.create(body, context);
        if (await kind.insert(context.env.DB, record)) return show(record);
        throw new ApiError('conflict', `The ${name} '${record.id}' already exists. Choose another id.`, {
          param: 'id',
        });
      },
    }),
    operation({
      method: 'GET',
      path: `/${name}s/{id}`,
      summary: `Show a ${name}`,
      status: 200,
      response: object,
      run: async ({ id }, { env }) => show(found(await kind.read(env.DB, id), name, id)),
    }),
    operation({
      method: 'PATCH',
      path: `/${name}s/{id}`,
      summary: `Change a ${name}: ${kind.effect}`,
      status: 200,
      body: kind.patch,
      example: kind.examples.patch,
      response: object,
      async run({ id, body }, context) {
        const changed = found(await kind.change(id, body, context), name, id);
        kind.forget(changed, context.keys);
        return show(changed);
      },
    }),
  ];
}
