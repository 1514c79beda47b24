import { expect, inject, test } from 'vitest';
import { FRONT_ENDS, type FrontEnd } from './front-end-bodies.ts';

/**
 * Replays what front-ends send with their default settings. Each body gets a completion. test/e2e replays the
 * requests of editors.
 */

/** Shortens a completion, so that the built-in model ends it soon. */
const LENGTHS = ['max_tokens', 'max_new_tokens', 'n_predict', 'num_predict', 'max_length'];
const shortened = (body: FrontEnd['body']): FrontEnd['body'] =>
  Object.fromEntries(
    Object.entries(body).map(([name, value]) => [name, LENGTHS.includes(name) && value !== 0 ? 4 : value]),
  );

test.each(Object.entries(FRONT_ENDS))('%s', async (_, { path, body, dialect }) => {
  const { url, apiKey } = inject('served');
  const response = await fetch(url + path, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${apiKey}`,
      'content-type': 'application/json',
      ...(dialect && { 'x-dialect': dialect }),
    },
    body: JSON.stringify(shortened(body)),
  });
  const text = await response.text();
  expect([response.status, text]).toEqual([200, expect.not.stringContaining('"error"')]);
  if (body.stream === true) expect(text).toMatch(/^data: \{/);
});
