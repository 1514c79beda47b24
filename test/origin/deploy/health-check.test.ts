import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const CHECK = fileURLToPath(new URL('../../../origin/deploy/health-check.ts', import.meta.url));

async function exitCode(port: number): Promise<unknown> {
  const env = { PATH: process.env.PATH, CONTINUO_ORIGIN_PORT: String(port) };
  const [code] = await once(spawn(process.execPath, [CHECK], { env, stdio: 'ignore' }), 'close');
  return code;
}

test('the health check passes for 200, fails for 503 and for a closed port', async () => {
  let status = 200;
  const paths: (string | undefined)[] = [];
  const server = createServer((request, response) => {
    paths.push(request.url);
    response.writeHead(status).end('{}');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  expect(await exitCode(port)).toBe(0);
  status = 503;
  expect(await exitCode(port)).toBe(1);
  server.closeAllConnections();
  server.close();
  await once(server, 'close');
  expect(await exitCode(port)).toBe(1);
  expect(paths).toEqual(['/health', '/health']);
});
