/** Writes a request as code that runs when it is pasted. */

export const CODE_FORMS = [
  ['curl', 'curl'],
  ['openai-python', 'openai-python'],
  ['openai-node', 'openai-node'],
  ['fetch', 'fetch'],
] as const;

export type CodeForm = (typeof CODE_FORMS)[number][0] | 'requests';

export interface CodeRequest {
  readonly method: string;
  readonly url: string;
  /** Null = the code reads the environment variable KEY. */
  readonly key: string | null;
  /** Headers without those of the key and the body. */
  readonly headers: Readonly<Record<string, string>>;
  /** Null = none. */
  readonly body: Readonly<Record<string, unknown>> | null;
}

const WRITERS: Readonly<Record<CodeForm, (request: CodeRequest) => string>> = {
  curl,
  'openai-python': openaiPython,
  'openai-node': openaiNode,
  requests: pythonRequests,
  fetch: fetchCode,
};

export const requestCode = (form: CodeForm, request: CodeRequest): string => WRITERS[form](request);

const COMPLETIONS = /\/completions$/;
const isCompletion = ({ method, url }: CodeRequest): boolean => method === 'POST' && COMPLETIONS.test(url);
const isStream = ({ url, body }: CodeRequest): boolean => body?.stream === true || url.endsWith('/stream');

/** Forms for one language each; the client of OpenAI has no method for other operations than completions. */
export const languagesOf = (request: CodeRequest): readonly (readonly [CodeForm, string])[] => [
  ['curl', 'curl'],
  [isCompletion(request) ? 'openai-python' : 'requests', 'Python'],
  [isCompletion(request) ? 'openai-node' : 'fetch', 'TypeScript'],
];

function curl({ method, url, key, headers, body }: CodeRequest): string {
  const quoted = JSON.stringify(body, null, 2).replaceAll("'", "'\\''");
  return [
    `curl ${method === (body ? 'POST' : 'GET') ? '' : `-X ${method} `}${url.includes('?') ? `'${url}'` : url}`,
    `-H "Authorization: Bearer ${key ?? '$KEY'}"`,
    ...(body ? ['-H "Content-Type: application/json"'] : []),
    ...Object.entries(headers).map(([name, value]) => `-H ${JSON.stringify(`${name}: ${value}`)}`),
    ...(body ? [`-d '${quoted}'`] : []),
  ].join(' \\\n  ');
}

/** Arguments that openai-python knows; all other fields go into `extra_body`. */
const PYTHON_ARGUMENTS = new Set(
  'model prompt best_of echo frequency_penalty logit_bias logprobs max_tokens n presence_penalty seed stop stream stream_options suffix temperature top_p user'.split(
    ' ',
  ),
);

/** Returns a value as Python writes it. */
function pythonValue(value: unknown): string {
  if (value === null) return 'None';
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  if (Array.isArray(value)) return `[${value.map(pythonValue).join(', ')}]`;
  if (typeof value !== 'object') return JSON.stringify(value);
  const entries = Object.entries(value).map(
    ([name, member]) => `${JSON.stringify(name)}: ${pythonValue(member)}`,
  );
  return `{${entries.join(', ')}}`;
}

const hasEntries = (headers: object): boolean => Object.keys(headers).length > 0;

function openaiPython(request: CodeRequest): string {
  const { url, key, headers, body } = request;
  const fields = Object.entries(body ?? {});
  const named = fields.filter(([name]) => PYTHON_ARGUMENTS.has(name));
  const extra = fields.filter(([name]) => !PYTHON_ARGUMENTS.has(name));
  const settings = [
    ...named.map(([name, value]) => `${name}=${pythonValue(value)},`),
    ...(extra.length === 0 ? [] : [`extra_body=${pythonValue(Object.fromEntries(extra))},`]),
  ];
  return `import os
from openai import OpenAI

client = OpenAI(
    base_url="${url.replace(COMPLETIONS, '')}",
    api_key=${key === null ? 'os.environ["KEY"]' : JSON.stringify(key)},${hasEntries(headers) ? `\n    default_headers=${pythonValue(headers)},` : ''}
)
completion = client.completions.create(
    ${settings.join('\n    ')}
)
${isStream(request) ? 'for chunk in completion:\n    for choice in chunk.choices:\n        print(choice.text, end="", flush=True)' : 'print(completion.choices[0].text)'}
`;
}

function pythonRequests({ method, url, key, headers, body }: CodeRequest): string {
  const bearer = key === null ? 'f"Bearer {os.environ[\'KEY\']}"' : JSON.stringify(`Bearer ${key}`);
  const others = Object.entries(headers).map(
    ([name, value]) => `, ${JSON.stringify(name)}: ${JSON.stringify(value)}`,
  );
  return `import os
import requests

response = requests.${method.toLowerCase()}(
    "${url}",
    headers={"Authorization": ${bearer}${others.join('')}},${body ? `\n    json=${pythonValue(body)},` : ''}
)
print(response.text)
`;
}

const javaScriptKey = (key: string | null): string =>
  key === null ? 'process.env.KEY' : JSON.stringify(key);

function openaiNode(request: CodeRequest): string {
  const { url, key, headers, body } = request;
  const defaults = hasEntries(headers) ? `\n  defaultHeaders: ${JSON.stringify(headers)},` : '';
  return `import OpenAI from 'openai';

const client = new OpenAI({
  baseURL: '${url.replace(COMPLETIONS, '')}',
  apiKey: ${javaScriptKey(key)},${defaults}
});
const completion = await client.completions.create(${JSON.stringify(body, null, 2)});
${isStream(request) ? "for await (const chunk of completion) process.stdout.write(chunk.choices[0]?.text ?? '');" : 'console.log(completion.choices[0].text);'}
`;
}

function fetchCode(request: CodeRequest): string {
  const { method, url, key, headers, body } = request;
  const all = [
    `authorization: ${key === null ? "'Bearer ' + process.env.KEY" : JSON.stringify(`Bearer ${key}`)}`,
    ...(body ? ["'content-type': 'application/json'"] : []),
    ...Object.entries(headers).map(([name, value]) => `'${name}': ${JSON.stringify(value)}`),
  ];
  const sent = body
    ? `\n  body: JSON.stringify(${JSON.stringify(body, null, 2).replaceAll('\n', '\n  ')}),`
    : '';
  const output = isStream(request)
    ? 'console.log(await response.text());'
    : isCompletion(request)
      ? 'const completion = await response.json();\nconsole.log(completion.choices?.[0].text ?? completion);'
      : 'console.log(await response.json());';
  return `const response = await fetch('${url}', {
  method: '${method}',
  headers: {
    ${all.join(',\n    ')},
  },${sent}
});
${output}
`;
}
