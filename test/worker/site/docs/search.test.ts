import path from 'node:path';
import MiniSearch from 'minisearch';
import { expect, test } from 'vitest';
import { readGuides } from '../../../../worker/site/build/guides.ts';
import { placesOfGuides } from '../../../../worker/site/build/guides-module.ts';
import { placesOf } from '../../../../worker/site/docs/search/search.ts';
import {
  type Found,
  findPlaces,
  SEARCH_OPTIONS,
} from '../../../../worker/site/docs/search/search-options.ts';
import { publicDocument } from './public-document.ts';

const DOCS = path.resolve(import.meta.dirname, '../../../../docs');
const index = new MiniSearch<Found>(SEARCH_OPTIONS);
index.addAll(placesOfGuides(readGuides(DOCS)));
index.addAll(placesOf(await publicDocument(), 'api'));

/** What people ask, and write wrong, and what answers it: a guide, a guide's section, or an operation. */
test.each([
  ['serve my own huggingface model', 'guides/models'],
  ['give a colleague a key', 'guides/tenants'],
  ['vllm', 'guides/getting-started#difference-to-vllm'],
  ['limit requests per minute', 'guides/limits'],
  ['rate limit', 'guides/limits'],
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
  ['compared with llama.cpp', 'guides/performance#on-a-cpu-beside-llamacpp'],
  ['what happens when the origin crashes', 'guides/reliability'],
  ['keyboard shortcuts', 'guides/playground#keyboard-shortcuts'],
  ['add a sampler', 'guides/architecture#add-a-sampler'],
  ['llama.cpp dialect', 'guides/dialects'],
  ['revoke a key', 'guides/tenants'],
  ['how many tokens did a tenant use', 'guides/money'],
  ['CONTINUO_PORT', 'guides/configuration'],
  ['x-resumable', 'guides/api'],
  ['glosary', 'guides/glossary'],
  ['/v1/completions', 'api/createCompletion'],
  ['how much memory does a model need', 'guides/models'],
  ['stop generating', 'guides/api'],
  ['delete a tenant', 'guides/tenants'],
  ['log format', 'guides/operating#logs'],
  ['langchain', 'guides/compatibility'],
  ['docker', 'guides/deploying'],
  ['gpu', 'guides/devices'],
  ['score a text', 'guides/api#scores'],
  ['quantize', 'guides/models#precisions-and-quantization'],
  ['which precision', 'guides/models#precisions-and-quantization'],
  ['gguf', 'guides/models#gguf-files'],
  ['quickstart', 'guides/getting-started'],
  ['quick start', 'guides/getting-started'],
  ['getting started', 'guides/getting-started'],
  ['get started', 'guides/getting-started'],
  ['how do I install it', 'guides/(getting-started|deploying)'],
  ['first request', 'guides/getting-started#first-request-with-curl'],
  ['quantization', 'guides/models#precisions-and-quantization'],
  ['quantizaton', 'guides/models#precisions-and-quantization'],
  ['privacy', 'guides/operating#privacy-and-stored-data'],
  ['privcy', 'guides/operating#privacy-and-stored-data'],
  ['gdpr', 'guides/operating#privacy-and-stored-data'],
  ['what is stored', 'guides/operating#privacy-and-stored-data'],
  ['401', 'guides/api#401-the-key'],
  ['http 429', 'guides/api#429-a-limit-is-reached'],
  ['503', 'guides/api#500-502-503-504-the-server'],
  ['run two models', 'guides/models#two-or-more-models'],
  ['two models at once', 'guides/models#two-or-more-models'],
  ['multiple models', 'guides/models#two-or-more-models'],
  ['difference to vllm', 'guides/getting-started#difference-to-vllm'],
  ['how does it differ from vllm', 'guides/getting-started#difference-to-vllm'],
  ['one dollar a day', 'guides/getting-started#a-key-limited-to-one-dollar-a-day'],
  ['dollar', 'guides/getting-started#a-key-limited-to-one-dollar-a-day'],
  ['spending limit', 'guides/money'],
  ['grammer', 'guides/constraints'],
  ['kuberentes', 'guides/deploying#kubernetes'],
  ['cloudfare', 'guides/deploying'],
  ['determinsm', 'guides/determinism'],
  ['lora', 'guides/models'],
  ['cuda', 'guides/(devices|command-line#cuda-install|getting-started)'],
  ['cuda-install', 'guides/(devices|command-line#cuda-install|getting-started)'],
  ['idempotency', 'guides/api#repeating-a-request'],
  ['backup', 'guides/operating#backup'],
  ['upgrade', 'guides/(operating|reliability)#upgrades'],
  ['delete data', 'guides/(tenants#erasing-a-tenant|operating#privacy-and-stored-data)'],
  ['billing', 'guides/operating#billing'],
  ['prometeus', 'guides/(operating|deploying)'],
  ['api key', 'guides/tenants#api-keys'],
  ['authentication', 'guides/api#authentication'],
  ['context length', 'guides/(models|api#length)'],
  ['invalid api key', 'guides/(api|tenants)'],
  ['data retention', 'guides/operating#privacy-and-stored-data'],
  ['is my prompt logged', 'guides/operating'],
  ['int8', 'guides/models'],
  ['streming', 'guides/api#streams'],
  ['budget per key', 'guides/limits'],
  ['amd gpu', 'guides/devices'],
  ['vulkan', 'guides/devices'],
  ['helm chart', 'guides/deploying'],
  ['rate limt', 'guides/(limits|api#429-a-limit-is-reached)'],
  ['safetensors', 'guides/models'],
  ['serve my own huggingface model', 'guides/models'],
  ['Yi-34B', 'guides/base-models'],
])('"%s" finds %s among the first three', (question, expected) => {
  const found = findPlaces(index, question).map(({ id }) => id);
  const due = new RegExp(`^/docs/${expected}(?:#|$)`);
  expect(found.slice(0, 3)).toContainEqual(expect.stringMatching(due));
});

test('records of decisions come after guides', () => {
  for (const question of ['grammar', 'logits', 'tokens']) {
    const areRecords = findPlaces(index, question).map(({ id }) => id.includes('/decisions'));
    expect(areRecords, question).toEqual(areRecords.toSorted());
    expect(areRecords).toContain(true);
  }
});

test('a result shows the sentence that has the words, and marks them', () => {
  const [first] = findPlaces(index, 'requests per minute');
  expect(first!.snippet.length).toBeGreaterThan(1);
  expect(first!.snippet.join('').length).toBeLessThanOrEqual(140);
  expect(first!.snippet[1]!.toLowerCase()).toMatch(/^(request|minute|limit)/);
});
