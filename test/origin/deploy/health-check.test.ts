import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { serve } from '../../support/local-server.ts';

const CHECK = fileURLToPath(new URL('../../../origin/deploy/health-check.ts', import.meta.url));

async function exitCode(port: number): Promise<unknown> {
  const env = { PATH: process.env.PATH, CONTINUO_ORIGIN_PORT: String(port) };
  const [code] = await once(spawn(process.execPath, [CHECK], { env, stdio: 'ignore' }), 'close');
  return code;
}

test('the health check passes for 200, fails for 503 and for a closed port', async () => {
  let status = 200;
  const paths: (string | undefined)[] = [];
  const { port, stop } = await serve((request, response) => {
    paths.push(request.url);
    response.writeHead(status).end('{}');
  });
  expect(await exitCode(port)).toBe(0);
  status = 503;
  expect(await exitCode(port)).toBe(1);
  await stop();
  expect(await exitCode(port)).toBe(1);
  expect(paths).toEqual(['/health', '/health']);
});
