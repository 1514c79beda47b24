/** Writes a completion request as code that runs when it is pasted. */

export const CODE_FORMS = [
  ['curl', 'curl'],
  ['openai-python', 'openai-python'],
  ['openai-node', 'openai-node'],
  ['fetch', 'fetch'],
] as const;

export type CodeForm = (typeof CODE_FORMS)[number][0];

export interface CodeRequest {
  /** Of the endpoint, without a path. */
  readonly url: string;
  /** Null = the code reads the environment variable KEY. */
  readonly key: string | null;
  /** Null = the tenant's own dialect. */
  readonly dialect: string | null;
  readonly body: Readonly<Record<string, unknown>>;
}

const WRITERS: Readonly<Record<CodeForm, (request: CodeRequest) => string>> = {
  curl,
  'openai-python': python,
  'openai-node': node,
  fetch: fetchCode,
};

export const requestCode = (form: CodeForm, request: CodeRequest): string => WRITERS[form](request);

const indented = (text: string, by: string): string => text.replaceAll('\n', `\n${by}`);

function curl({ url, key, dialect, body }: CodeRequest): string {
  const quoted = JSON.stringify(body, null, 2).replaceAll("'", "'\\''");
  return [
    `curl ${url}/v1/completions`,
    `-H "Authorization: Bearer ${key ?? '$KEY'}"`,
    '-H "Content-Type: application/json"',
    ...(dialect === null ? [] : [`-H "x-dialect: ${dialect}"`]),
    `-d '${quoted}'`,
  ].join(' \\\n  ');
}

/** Arguments that openai-python knows; all other fields go into `extra_body`. */
const PYTHON_ARGUMENTS = new Set([
  ...['model', 'prompt', 'best_of', 'echo', 'frequency_penalty', 'logit_bias', 'logprobs', 'max_tokens', 'n'],
  ...['presence_penalty', 'seed', 'stop', 'suffix', 'temperature', 'top_p', 'user'],
]);

/** Returns a value as Python writes it. */
function pythonValue(value: unknown): string {
  if (value === null) return 'None';
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  if (Array.isArray(value)) return `[${value.map(pythonValue).join(', ')}]`;
  if (typeof value !== 'object') return JSON.stringify(value);
  const entries = Object.entries(value).map(([name, one]) => `${JSON.stringify(name)}: ${pythonValue(one)}`);
  return `{${entries.join(', ')}}`;
}

function python({ url, key, dialect, body }: CodeRequest): string {
  const fields = Object.entries(body);
  const known = fields.filter(([name]) => PYTHON_ARGUMENTS.has(name));
  const extra = fields.filter(([name]) => !PYTHON_ARGUMENTS.has(name));
  const headers = dialect === null ? '' : `, default_headers={"x-dialect": ${JSON.stringify(dialect)}}`;
  const settings = [
    ...known.map(([name, value]) => `${name}=${pythonValue(value)},`),
    ...(extra.length === 0 ? [] : [`extra_body=${pythonValue(Object.fromEntries(extra))},`]),
  ];
  return `import os
from openai import OpenAI

client = OpenAI(base_url="${url}/v1", api_key=${key === null ? 'os.environ["KEY"]' : JSON.stringify(key)}${headers})
completion = client.completions.create(
    ${settings.join('\n    ')}
)
print(completion.choices[0].text)
`;
}

const javaScriptKey = (key: string | null): string =>
  key === null ? 'process.env.KEY' : JSON.stringify(key);

function node({ url, key, dialect, body }: CodeRequest): string {
  const headers = dialect === null ? '' : `, defaultHeaders: { 'x-dialect': '${dialect}' }`;
  return `import OpenAI from 'openai';

const client = new OpenAI({ baseURL: '${url}/v1', apiKey: ${javaScriptKey(key)}${headers} });
const completion = await client.completions.create(${JSON.stringify(body, null, 2)});
console.log(completion.choices[0].text);
`;
}

function fetchCode({ url, key, dialect, body }: CodeRequest): string {
  const authorization = key === null ? "'Bearer ' + process.env.KEY" : JSON.stringify(`Bearer ${key}`);
  return `const response = await fetch('${url}/v1/completions', {
  method: 'POST',
  headers: {
    authorization: ${authorization},
    'content-type': 'application/json',${dialect === null ? '' : `\n    'x-dialect': '${dialect}',`}
  },
  body: JSON.stringify(${indented(JSON.stringify(body, null, 2), '  ')}),
});
const completion = await response.json();
console.log(completion.choices?.[0].text ?? completion);
`;
}
