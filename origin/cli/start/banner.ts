import type { Ready } from './launcher.ts';

/** The page's address. Its code works once: an address stays in the browser's history. */
export const pageOf = ({ url, pageCode }: Ready): string => `${url}/#code=${pageCode}`;

/** What `npm start` prints when the server is ready: page, address, key and a curl line for the model. */
export function banner(ready: Ready): string {
  const { url, apiKey, stateDirectory } = ready;
  const body = JSON.stringify({
    model: 'default',
    prompt: 'Once upon a time there was a king who had three daughters.',
    max_tokens: 80,
    temperature: 0.8,
    min_p: 0.05,
    repetition_penalty: 1.1,
    repeat_last_n: 64,
  });
  return `
Continuo is ready.

  page      ${pageOf(ready)}   (works once)
  endpoint  ${url}/v1
  key       ${apiKey}   (development only)
  logs      ${stateDirectory}

Try it:

  curl ${url}/v1/completions \\
    -H "Authorization: Bearer ${apiKey}" \\
    -H "Content-Type: application/json" \\
    -d '${body}'

Ctrl-C stops everything.`;
}
