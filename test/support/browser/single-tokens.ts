import { type LocalServer, serve } from '../local-server.ts';

/** Serves completions at its URL, each token as an event of its own. */
export async function singleTokens(tokens: readonly string[], perSecond: number): Promise<LocalServer> {
  const server = await serve((_, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    const start = performance.now();
    let [sent, offset] = [0, 0];
    const timer = setInterval(() => {
      const due = Math.min(tokens.length, Math.floor(((performance.now() - start) / 1_000) * perSecond));
      for (; sent < due; sent += 1) {
        const text = tokens[sent]!;
        const others = Object.fromEntries([1, 2, 3, 4].map((rank) => [`${text}${rank}`, -1 - rank]));
        const logprobs = {
          tokens: [text],
          token_logprobs: [-1],
          top_logprobs: [{ [text]: -1, ...others }],
          text_offset: [offset],
        };
        const finish_reason = sent + 1 === tokens.length ? 'length' : null;
        offset += text.length;
        response.write(
          `data: ${JSON.stringify({ choices: [{ index: 0, text, logprobs, finish_reason }] })}\n\n`,
        );
      }
      if (sent < tokens.length) return;
      clearInterval(timer);
      response.end('data: [DONE]\n\n');
    }, 1);
    response.on('close', () => clearInterval(timer));
  });
  return { ...server, url: `${server.url}/v1/completions` };
}
