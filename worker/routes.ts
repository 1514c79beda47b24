import { ACCOUNT_OPERATIONS } from './account/account-operations.ts';
import { ADMIN_ROUTES, routesOf } from './admin/admin-routes.ts';
import { cancelBatch, createBatch, listBatches, showBatch } from './batches/batches.ts';
import { complete, completeNative, infill } from './completions.ts';
import { deleteFile, listFiles, readFile, showFile, uploadFile } from './files/files.ts';
import { addPart, cancelUpload, completeUpload, createUpload } from './files/uploads.ts';
import { compressed } from './http/compression.ts';
import { jsonResponse } from './http/responses.ts';
import type { Route } from './http/router.ts';
import { docsPage, pageKey, siteFile, startPage } from './http/site.ts';
import { withLimitHeaders } from './limits/limit-headers.ts';
import { health, listModels, showModel, showProps } from './models.ts';
import { idempotent } from './replay/idempotent.ts';
import { resumable, resumeStream } from './replay/resumable.ts';
import { score, scoreLabels } from './score.ts';
import { detokenize, showTokenizer, tokenize } from './tokenize.ts';

const completions = withLimitHeaders(resumable(idempotent(complete)));

export const ROUTES: readonly Route[] = [
  { method: 'POST', path: '/v1/completions', handler: completions },
  { method: 'POST', path: '/api/v1/completions', handler: completions },
  { method: 'POST', path: '/v1/fim/completions', handler: completions },
  { method: 'POST', path: '/v1/score', handler: withLimitHeaders(idempotent(score)) },
  { method: 'POST', path: '/generative_scoring', handler: withLimitHeaders(idempotent(scoreLabels)) },
  { method: 'GET', path: '/v1/completions/:rest/stream', handler: withLimitHeaders(resumeStream) },
  { method: 'POST', path: '/v1/files', handler: uploadFile },
  { method: 'GET', path: '/v1/files', handler: listFiles },
  { method: 'GET', path: '/v1/files/:rest', handler: showFile },
  { method: 'GET', path: '/v1/files/:rest/content', handler: readFile },
  { method: 'DELETE', path: '/v1/files/:rest', handler: deleteFile },
  { method: 'POST', path: '/v1/uploads', handler: createUpload },
  { method: 'POST', path: '/v1/uploads/:rest/parts', handler: addPart },
  { method: 'POST', path: '/v1/uploads/:rest/complete', handler: completeUpload },
  { method: 'POST', path: '/v1/uploads/:rest/cancel', handler: cancelUpload },
  { method: 'POST', path: '/v1/batches', handler: idempotent(createBatch) },
  { method: 'GET', path: '/v1/batches', handler: listBatches },
  { method: 'GET', path: '/v1/batches/:rest', handler: showBatch },
  { method: 'POST', path: '/v1/batches/:rest/cancel', handler: cancelBatch },
  // llama.cpp's own API. Its alias /completions is the address of OpenAI clients with a wrong base URL.
  { method: 'POST', path: '/completion', handler: withLimitHeaders(idempotent(completeNative)) },
  { method: 'POST', path: '/infill', handler: withLimitHeaders(idempotent(infill)) },
  { method: 'GET', path: '/props', handler: showProps },
  { method: 'GET', path: '/v1/models', handler: listModels },
  { method: 'GET', path: '/v1/models/:rest+', handler: showModel },
  { method: 'GET', path: '/', handler: compressed(startPage) },
  { method: 'GET', path: '/docs', handler: compressed(docsPage) },
  { method: 'GET', path: '/docs/:rest+', handler: compressed(docsPage) },
  { method: 'GET', path: '/assets/:rest', handler: compressed(siteFile) },
  { method: 'POST', path: '/page-key', handler: pageKey },
  { method: 'GET', path: '/health', handler: health },
  { method: 'POST', path: '/tokenize', handler: withLimitHeaders(tokenize) },
  { method: 'POST', path: '/detokenize', handler: withLimitHeaders(detokenize) },
  { method: 'GET', path: '/tokenizer_info', handler: showTokenizer },
  {
    method: 'GET',
    path: '/openapi.json',
    handler: compressed((_, context) => jsonResponse(context.openApi())),
  },
  ...routesOf(ACCOUNT_OPERATIONS, '/v1'),
  ...ADMIN_ROUTES,
];
