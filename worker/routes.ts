import { healthResponse, startResponse } from '@continuo/shared/completion-response.ts';
import { clientJson } from '@continuo/shared/framing.ts';
import { ACCOUNT_OPERATIONS } from './account/account-operations.ts';
import { ADMIN_OPERATIONS } from './admin/admin-operations.ts';
import { BATCH_OPERATIONS } from './batches/batches.ts';
import { COMPLETION_OPERATIONS } from './completions.ts';
import { FILE_OPERATIONS } from './files/files.ts';
import { UPLOAD_OPERATIONS } from './files/uploads.ts';
import { compressed } from './http/compression.ts';
import { jsonResponse, jsonText } from './http/responses.ts';
import type { Route } from './http/router.ts';
import { docsPage, pageKey, serviceWorker, siteFile, startPage } from './http/site.ts';
import { MODEL_OPERATIONS } from './models.ts';
import { type OperationGroup, openApiDocument } from './operations/document.ts';
import type { Operation } from './operations/operation.ts';
import { SCORING_OPERATIONS } from './score.ts';
import { TOKENIZER_OPERATIONS } from './tokenize.ts';

/** Operations that need no key. */
const SERVICE_OPERATIONS: readonly Operation[] = [
  {
    method: 'GET',
    path: '/',
    id: 'start',
    summary: 'Link to the other endpoints. Browsers get the page.',
    response: startResponse,
    handler: compressed(startPage),
  },
  {
    method: 'GET',
    path: '/health',
    id: 'health',
    summary: 'Report that the endpoint is up.',
    response: healthResponse,
    // It does not reveal the state of the upstreams.
    handler: () => jsonResponse({ status: 'ok' }),
  },
];

/** The public operations, in the order of the OpenAPI document. */
export const OPERATION_GROUPS: readonly OperationGroup[] = [
  {
    tag: 'Completions',
    description: 'Continue texts, plain or streamed.',
    operations: COMPLETION_OPERATIONS,
  },
  { tag: 'Scoring', description: 'Probabilities of given texts.', operations: SCORING_OPERATIONS },
  {
    tag: 'Batches',
    description: 'Many requests in a file, run when there is room, and their files.',
    operations: [...FILE_OPERATIONS, ...UPLOAD_OPERATIONS, ...BATCH_OPERATIONS],
  },
  { tag: 'Models', description: 'The models that a key may use.', operations: MODEL_OPERATIONS },
  { tag: 'Tokenizer', description: 'Convert texts to tokens and back.', operations: TOKENIZER_OPERATIONS },
  { tag: 'Account', description: 'Own usage, limits and keys.', operations: ACCOUNT_OPERATIONS },
  { tag: 'Service', description: 'State and addresses of the endpoint.', operations: SERVICE_OPERATIONS },
];

export const PUBLIC_API = {
  title: 'Continuo',
  description: 'Text completions, compatible with the clients of several systems.',
};

let openApiText: string | null = null;

/** Serves the OpenAPI document. An isolate builds it at its first request. */
function openApi(): Response {
  openApiText ??= clientJson(openApiDocument(OPERATION_GROUPS, PUBLIC_API));
  return jsonText(openApiText);
}

export const ROUTES: readonly Route[] = [
  ...OPERATION_GROUPS.flatMap(({ operations }) => operations),
  { method: 'GET', path: '/docs', handler: compressed(docsPage) },
  { method: 'GET', path: '/docs/{page+}', handler: compressed(docsPage) },
  { method: 'GET', path: '/assets/{name}', handler: compressed(siteFile) },
  { method: 'GET', path: '/service-worker.js', handler: compressed(serviceWorker) },
  { method: 'POST', path: '/page-key', handler: pageKey },
  { method: 'GET', path: '/openapi.json', handler: compressed(openApi) },
  ...ADMIN_OPERATIONS,
];
