import { tenantWithKey } from '../../admin/admin-client.ts';
import { type ErrorCase, posting } from './case.ts';

const type = 'invalid_request_error';

export const STATUS_404: readonly ErrorCase[] = [
  {
    name: 'unknown URL',
    send: (worker) => worker.request('/v1/x', { method: 'POST' }),
    type,
    code: 'unknown_url',
    param: null,
    message: /^Invalid URL \(POST \/v1\/x\)\. This server offers text completions: POST \/v1\/completions\.$/,
  },
  {
    name: 'unknown URL, found before the missing key',
    send: (worker) => fetch(`${worker.url}/v1/completions/`.replace('completions/', 'nothing')),
    type,
    code: 'unknown_url',
    param: null,
    message: /GET \/v1\/nothing/,
  },
  {
    name: 'unknown model',
    send: posting({ model: 'nope' }),
    type,
    code: 'model_not_found',
    param: 'model',
    message:
      /'nope' does not exist or you do not have access to it\. Available models: 'org\/tiny', 'default'\.$/,
  },
  {
    name: "'default' where two models are served",
    send: (worker, origin) => {
      origin.models = origin.models.flatMap((model) => [model, { ...model, id: 'second' }]);
      return worker.post({ model: 'default', prompt: 'Hi' });
    },
    type,
    code: 'model_not_found',
    param: 'model',
    message: /'default'/,
  },
  {
    name: 'a model that the key may not use, with the same response as an unknown model',
    send: async (worker) => {
      const { key } = await tenantWithKey(worker, 'other-model', {}, { models: ['other'] });
      return worker.post({ model: 'default', prompt: 'Hi' }, { headers: { authorization: `Bearer ${key}` } });
    },
    type,
    code: 'model_not_found',
    param: 'model',
    message: /^The model 'default' does not exist or you do not have access to it\.$/,
  },
  {
    name: 'unknown model in the catalogue',
    send: (worker) => worker.request('/v1/models/nope/none'),
    type,
    code: 'model_not_found',
    param: 'model',
    message: /'nope\/none'/,
  },
];
