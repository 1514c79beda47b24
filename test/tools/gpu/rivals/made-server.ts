import { createServer } from 'node:http';

/**
 * A server of completions without a model: `made-server.ts PORT WAY`. It ends at once, never gets ready, ends
 * at the first completion, or serves.
 */

const [port, way] = process.argv.slice(2);

if (way === 'ends') {
  console.error('there is no card');
  process.exit(3);
}

const server = createServer(async (request, response) => {
  if (request.method === 'GET') {
    response.writeHead(way === 'never ready' ? 503 : 200).end();
    return;
  }
  if (way === 'ends in use') process.exit(4);
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const { max_tokens: tokens } = JSON.parse(Buffer.concat(chunks).toString()) as { max_tokens: number };
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  for (let at = 1; at <= tokens; at++) {
    const event = { choices: [{ index: 0, text: 'a' }], usage: { completion_tokens: at } };
    response.write(`data: ${JSON.stringify(event)}\n\n`);
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  response.end('data: [DONE]\n\n');
});
server.listen(Number(port), '127.0.0.1', () => console.log('attention: none\nlistens'));
