import { expect, test } from 'vitest';
import { CODE_FORMS, requestCode } from '../../../../worker/site/copy/request-code.ts';

const REQUEST = {
  url: 'http://localhost:8787',
  key: null,
  dialect: 'vllm',
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
