import { expect, test, vi } from 'vitest';
import { request } from '../../support/generation-request.ts';
import { originForEachTest } from './running-origin.ts';

const origin = originForEachTest();

test('the log never contains a prompt, completion, secret or signature', async () => {
  const prompts = ['the PROMPT nobody may see'];
  await (await origin.call('/generate', { body: request({ prompts }) })).text();
  await origin.error('/generate', { body: request({ prompts, suffix: 'SUFFIX', model: 'other' }) });
  await origin.error('/generate', { body: { ...request({ prompts }), stop: ['PROMPT', 4] } });
  vi.spyOn(origin.engine, 'submit').mockRejectedValueOnce(new RangeError(`no place for ${prompts[0]}`));
  expect((await origin.error('/generate', { body: request({ prompts }) })).status).toBe(500);
  const log = origin.logLines.join('');
  expect(log).toContain('"requestId":"request-1"');
  expect(log).toMatch(/"name":"RangeError","frames":\["[^"]*log\.test\.ts/);
  for (const secret of ['PROMPT', 'SUFFIX', ' two', 'a secret of', 'v1.']) expect(log).not.toContain(secret);
});
