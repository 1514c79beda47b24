import { expect, it } from 'vitest';
import { keyExchange } from '../../../../origin/cli/start/page-key.ts';

const CODE = 'abcdefgh';

async function statusOf(exchange: ReturnType<typeof keyExchange>, code: unknown): Promise<number> {
  const request = new Request('http://localhost/', { method: 'POST', body: JSON.stringify({ code }) });
  return (await exchange(request)).status;
}

it('gives the key for the code once, and 404 for every other code, whatever its characters', async () => {
  const exchange = keyExchange({ code: CODE, key: 'sk-1' });
  for (const code of ['abcdefgx', 'äbcdefgh', '', 7]) expect(await statusOf(exchange, code)).toBe(404);
  expect(await statusOf(exchange, CODE)).toBe(200);
  expect(await statusOf(exchange, CODE)).toBe(404);
});
