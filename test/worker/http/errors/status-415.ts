import { type ErrorCase, posting, toWorkerWith } from './case.ts';

const row = (name: string, headers: Record<string, string>): ErrorCase => ({
  name,
  send: (worker) => worker.post('{"model":"default","prompt":"Hi"}', { headers }),
  type: 'invalid_request_error',
  code: 'unsupported_media_type',
  param: null,
  message: /expected 'application\/json'/,
});

export const STATUS_415: readonly ErrorCase[] = [
  row('a form', { 'content-type': 'application/x-www-form-urlencoded' }),
  row('plain text', { 'content-type': 'text/plain; charset=utf-8' }),
  row('nothing', { 'content-type': '' }),
  {
    name: 'a model whose server has only chat completions',
    send: (worker, origin) => {
      const models = [{ id: 'chat', contextLength: 2_048, rawCompletions: false }];
      const upstream = { kind: 'openai', name: 'foreign', url: origin.url, apiKey: 'FOREIGN_KEY', models };
      const vars = { UPSTREAMS: JSON.stringify([upstream]), FOREIGN_KEY: 'key' };
      return toWorkerWith(vars, posting({ model: 'chat' }))(worker, origin);
    },
    type: 'invalid_request_error',
    code: 'unsupported_endpoint',
    param: 'model',
    message: /vLLM, Ollama, LM Studio/,
  },
];
