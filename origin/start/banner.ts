/** What `npm start` says when a completion would work: where, with which key, and a line to paste. */
export function banner(url: string, apiKey: string, stateDirectory: string): string {
  const body = JSON.stringify({
    model: 'default',
    prompt: 'Once upon a time',
    max_tokens: 48,
    temperature: 0.7,
  });
  return `
Continuo is ready.

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
