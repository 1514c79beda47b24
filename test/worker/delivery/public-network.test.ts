import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { openLocalWorker } from '../../../origin/cli/start/local-worker.ts';

test('on one host, a name that resolves to a private address is not connected', async () => {
  let connections = 0;
  const server = createServer(() => (connections += 1)).listen(0);
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const script = `export default { async fetch(request, { PUBLIC_NETWORK }) {
    return PUBLIC_NETWORK.fetch(await request.text()).then(() => new Response('reached'), () => new Response('refused'));
  } };`;
  const options = {
    host: '127.0.0.1',
    port: 0,
    origins: [{ name: 'origin', url: 'http://127.0.0.1:1' }],
    vars: {},
    script,
    onLog: () => {},
  };
  const { url, miniflare } = await openLocalWorker(options);
  onTestFinished(() => miniflare.dispose());
  for (const host of ['localhost', '127.0.0.1', '[::1]']) {
    const answer = await fetch(url, { method: 'POST', body: `http://${host}:${port}/` });
    expect(await answer.text()).toBe('refused');
  }
  expect(connections).toBe(0);
});
