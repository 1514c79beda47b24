import { expect, test } from 'vitest';
import { CODE_FORMS, languagesOf, requestCode } from '../../../../worker/site/copy/request-code.ts';

const REQUEST = {
  method: 'POST',
  url: 'http://localhost:8787/v1/completions',
  key: null,
  headers: { 'x-dialect': 'vllm' },
  body: { model: 'default', prompt: "It's", min_p: 0.1, echo: true, stop: ['\n', '"'] },
};

test.each(CODE_FORMS.map(([form]) => form))('%s has no key unless it is asked for', (form) => {
  expect(requestCode(form, REQUEST)).toContain('KEY');
  const withKey = requestCode(form, { ...REQUEST, key: 'sk-1' });
  expect(withKey).toContain('sk-1');
  expect(withKey).not.toContain('KEY');
});

test('curl closes its quotation for an apostrophe', () => {
  expect(requestCode('curl', REQUEST)).toContain(`"prompt": "It'\\''s"`);
});

test('openai-python gets the fields that it does not know in extra_body', () => {
  const code = requestCode('openai-python', REQUEST);
  expect(code).toContain('echo=True,');
  expect(code).toContain('extra_body={"min_p": 0.1},');
});

test('other operations than completions are written without the client of OpenAI', () => {
  const score = { ...REQUEST, url: 'http://localhost:8787/v1/score' };
  expect(languagesOf(score).map(([form]) => form)).toEqual(['curl', 'requests', 'fetch']);
  expect(languagesOf(REQUEST).map(([form]) => form)).toEqual(['curl', 'openai-python', 'openai-node']);
});

test('an address with a query is quoted for the shell, and other methods are named', () => {
  const listed = { ...REQUEST, method: 'GET', url: 'http://host/admin/v1/keys?limit=5&after=a', body: null };
  expect(requestCode('curl', listed)).toContain("curl 'http://host/admin/v1/keys?limit=5&after=a'");
  expect(requestCode('curl', { ...listed, method: 'DELETE' })).toContain('-X DELETE');
});
