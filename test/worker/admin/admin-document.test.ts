import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { expect, test } from 'vitest';
import { ADMIN_OPERATIONS } from '../../../worker/admin/admin-operations.ts';
import { undescribedFields } from '../support/api-document.ts';
import { sharedWorker } from '../support/worker-for-tests.ts';
import { admin } from './admin-client.ts';

const { worker } = sharedWorker();

interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly tags: readonly string[];
  readonly parameters: readonly { readonly name: string; readonly description?: string }[];
  readonly requestBody?: {
    readonly content: {
      readonly 'application/json': {
        readonly schema: object;
        readonly example?: unknown;
        readonly examples?: Readonly<Record<string, { readonly value: unknown }>>;
      };
    };
  };
  readonly responses: Readonly<Record<string, unknown>>;
}

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, unknown>> };
}

const document = async () => (await admin(worker, 'GET', '/openapi.json')).body as unknown as Document;

async function operations(): Promise<[string, Operation][]> {
  const { paths } = await document();
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]): [string, Operation] => [
      `${method.toUpperCase()} ${path}`,
      operation,
    ]),
  );
}

test('has every admin route except itself', async () => {
  const routes = ADMIN_OPERATIONS.map(({ method, path }) => `${method} ${path}`);
  const documented = (await operations()).map(([route]) => route);
  expect([...documented, 'GET /admin/v1/openapi.json'].toSorted()).toEqual(routes.toSorted());
});

test('describes every field and parameter, and has operation ids that occur once', async () => {
  const all = await operations();
  for (const [route, { summary, tags, parameters, requestBody, responses }] of all) {
    expect([summary, ...tags], route).not.toContain('');
    expect(parameters.filter(({ description }) => !description)).toEqual([]);
    expect(undescribedFields([requestBody, responses], route)).toEqual([]);
  }
  const { schemas } = (await document()).components;
  for (const [name, schema] of Object.entries(schemas)) expect(undescribedFields(schema, name)).toEqual([]);
  const ids = all.map(([, { operationId }]) => operationId);
  expect(ids).toEqual([...new Set(ids)]);
  expect(ids).toEqual(
    expect.arrayContaining(['listPlans', 'createKey', 'rotateKey', 'revokeKey', 'changeTenant']),
  );
});

test('has examples of request bodies that match their schemas', async () => {
  const ajv = new Ajv2020({ strict: true, allowUnionTypes: true });
  addFormats.default(ajv);
  ajv.addKeyword('components');
  const { components } = await document();
  for (const [route, { requestBody }] of await operations()) {
    if (requestBody === undefined) continue;
    const { schema, example, examples = {} } = requestBody.content['application/json'];
    const values = [...(example ? [example] : []), ...Object.values(examples).map(({ value }) => value)];
    expect(values, route).not.toEqual([]);
    for (const value of values)
      expect([ajv.validate({ ...schema, components }, value), ajv.errorsText()], route).toEqual([
        true,
        'No errors',
      ]);
  }
});

test('names the errors of an operation by status', async () => {
  const statuses = Object.fromEntries(
    (await operations()).map(([, { operationId, responses }]) => [operationId, Object.keys(responses)]),
  );
  expect(statuses.showPlan).toEqual(['200', '401', '403', '404', '429', '500', '503']);
  expect(statuses.createKey).toEqual(expect.arrayContaining(['201', '400', '409', '415']));
});
