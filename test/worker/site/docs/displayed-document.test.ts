import { expect, test } from 'vitest';
import { openApiDocument } from '../../../../worker/openapi/document.ts';
import { type OpenApiDocument, operationsOf } from '../../../../worker/site/docs/documents.ts';
import { displayedDocument } from '../../../../worker/site/docs/operation/displayed-document.ts';

const document = openApiDocument([
  { method: 'POST', path: '/v1/completions' },
  { method: 'GET', path: '/health' },
]) as unknown as OpenApiDocument;
const [completions] = operationsOf(document, 'api');

interface Shown {
  readonly paths: Record<
    string,
    {
      readonly post: {
        readonly requestBody: {
          content: { 'application/json': { schema: { properties: Record<string, object> } } };
        };
        readonly responses: Record<string, { readonly description: string; readonly content?: object }>;
      };
    }
  >;
}

test('shows one operation, whose request types do not repeat null', () => {
  const { paths } = displayedDocument(document, completions!) as Shown;
  expect(Object.keys(paths)).toEqual(['/v1/completions']);
  const { properties } = paths['/v1/completions']!.post.requestBody.content['application/json'].schema;
  expect(properties.temperature).toMatchObject({ type: 'number', minimum: 0, maximum: 2 });
  expect(properties.stream).toMatchObject({ type: 'boolean' });
  expect(properties.stop).toMatchObject({ anyOf: [{ type: 'string' }, { type: 'array' }] });
  expect(JSON.stringify(properties)).not.toContain('"null"');
});

test('keeps the success response, and shows only the codes of errors', () => {
  const { responses } = (displayedDocument(document, completions!) as Shown).paths['/v1/completions']!.post;
  expect(responses['200']?.content).toBeDefined();
  expect(responses['401']).toEqual({ description: '`missing_api_key`, `invalid_api_key`' });
});
