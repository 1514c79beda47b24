import path from 'node:path';
import MiniSearch from 'minisearch';
import { expect, test } from 'vitest';
import { openApiDocument } from '../../../../worker/openapi/document.ts';
import { OPERATIONS } from '../../../../worker/openapi/operations.ts';
import { readGuides } from '../../../../worker/site/build/guides.ts';
import { searchIndexOf } from '../../../../worker/site/build/guides-module.ts';
import type { OpenApiDocument } from '../../../../worker/site/docs/documents.ts';
import { placesOf } from '../../../../worker/site/docs/search/search.ts';
import {
  type Found,
  findPlaces,
  SEARCH_OPTIONS,
} from '../../../../worker/site/docs/search/search-options.ts';

const routes = Object.keys(OPERATIONS).map((name) => {
  const [method = '', path = ''] = name.split(' ');
  return { method, path };
});
const DOCS = path.resolve(import.meta.dirname, '../../../../docs');
const index = MiniSearch.loadJSON<Found>(searchIndexOf(readGuides(DOCS)), SEARCH_OPTIONS);
index.addAll(placesOf(openApiDocument(routes) as unknown as OpenApiDocument, 'api'));

/** What people ask, and the page that answers it: a guide, a guide's section, or an operation. */
test.each([
  ['serve my own huggingface model', 'guides/models'],
  ['give a colleague a key', 'guides/tenants-and-limits'],
  ['vllm', 'guides/deploying#other-engines'],
  ['100 requests per minute', 'guides/tenants-and-limits'],
  ['rate limit', 'guides/tenants-and-limits'],
  ['run on nvidia gpu', 'guides/devices'],
  ['deploy to kubernetes', 'guides/deploying#kubernetes'],
  ['deploy to cloudflare', 'guides/deploying'],
  ['several regions', 'guides/deploying#many-regions'],
  ['same output twice', 'guides/determinism'],
  ['why do two runs give the same tokens', 'guides/determinism'],
  ['json schema', 'guides/constraints#json-schema'],
  ['force valid json', 'guides/constraints'],
  ['regular expression', 'guides/constraints#regular-expressions'],
  ['gbnf grammar', 'guides/constraints#gbnf'],
  ['migrate from openai', 'guides/migrating-from-openai'],
  ['logprobs', 'guides/api#logprobs'],
  ['streaming', 'guides/api#streams'],
  ['fill in the middle', 'guides/api#fill-in-the-middle'],
  ['vs code autocomplete', 'guides/api#editors'],
  ['retry the same request', 'guides/api#repeating-a-request'],
  ['error codes', 'guides/api#errors'],
  ['images', 'guides/api#images'],
  ['environment variables', 'guides/configuration'],
  ['prometheus metrics', 'guides/operating#metrics'],
  ['how fast is it', 'guides/performance'],
  ['compared with llama.cpp', 'guides/performance#compared-with-llamacpp'],
  ['what happens when the origin crashes', 'guides/reliability'],
  ['keyboard shortcuts', 'guides/playground#keys'],
  ['add a sampler', 'guides/architecture#add-a-sampler'],
  ['llama.cpp dialect', 'guides/dialects'],
  ['revoke a key', 'guides/tenants-and-limits'],
  ['how many tokens did a tenant use', 'guides/tenants-and-limits#usage'],
  ['CONTINUO_PORT', 'guides/configuration'],
  ['x-resumable', 'guides/api'],
  ['glosary', 'guides/glossary'],
  ['/v1/completions', 'api/createCompletion'],
  ['how much memory does a model need', 'guides/models'],
  ['stop generating', 'guides/api'],
  ['delete a tenant', 'guides/tenants-and-limits'],
  ['log format', 'guides/operating#logs'],
  ['langchain', 'guides/compatibility'],
  ['docker', 'guides/deploying'],
  ['gpu', 'guides/devices'],
  ['score a text', 'guides/api#scores'],
  ['quantize', 'guides/models#precisions'],
  ['which precision', 'guides/models#precisions'],
  ['gguf', 'guides/models#gguf-files'],
])('"%s" finds %s first', (question, expected) => {
  const [first] = findPlaces(index, question);
  expect(first?.id).toMatch(new RegExp(`^/docs/${expected.replaceAll('.', '\\.')}(#|$)`));
});

test('a result shows the sentence that has the words, and marks them', () => {
  const [first] = findPlaces(index, 'requests per minute');
  expect(first!.snippet.length).toBeGreaterThan(1);
  expect(first!.snippet.join('').length).toBeLessThanOrEqual(140);
  expect(first!.snippet[1]!.toLowerCase()).toMatch(/^(request|minute|limit)/);
});
