import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { bareEnvironment } from '../../support/child-processes.ts';
import { newDirectory } from '../../support/new-directory.ts';
import { acceptedFor, doneFor, finishOf, tokenEvent } from '../../worker/support/scripts.ts';
import { KEY } from '../../worker/support/worker.ts';
import { workerForTests } from '../../worker/support/worker-for-tests.ts';
import { type CliRun, runCli } from './run-cli.ts';

const { worker, origin } = workerForTests();
const MAIN = path.resolve(import.meta.dirname, '../../../origin/cli/main.ts');
const BIN = path.resolve(import.meta.dirname, '../../../origin/cli/continuo.js');

const environment = () => ({ CONTINUO_URL: worker.url, CONTINUO_API_KEY: KEY });
const complete = (words: readonly string[], run: CliRun = {}) =>
  runCli(['complete', ...words], { ...run, environment: environment() });

const ESCAPE = '\u001b';
const COLORS = { hasColors: true };
const NO_COLORS = { hasColors: false };
const paint = (code: number, text: string) => `${ESCAPE}[${code}m${text}${ESCAPE}[39m`;

test('writes each token when it arrives', async () => {
  const second = Promise.withResolvers<void>();
  origin.script = async (request, wire) => {
    wire.send(...acceptedFor(request), tokenEvent(1, ' one'));
    await second.promise;
    wire.send(tokenEvent(2, ' two'), finishOf(0, 'length', 2), doneFor(request, 2));
    wire.end();
  };
  const writes: string[] = [];
  const onWrite = (text: string) => {
    writes.push(text);
    second.resolve();
  };
  const result = await complete(['Hi', '--max-tokens', '2'], { onWrite });
  expect(result).toEqual({ code: 0, stdout: ' one two', stderr: '' });
  expect(writes).toEqual([' one', ' two']);
});

test.each([
  ['an argument', ['Once upon'], undefined, 'Once upon'],
  ['a pipe', [], 'line\n', 'line\n'],
  ['a pipe named -', ['-'], ' ü ', ' ü '],
])('sends the prompt from %s exactly as it is', async (_, words, stdin, prompt) => {
  expect((await complete(words, stdin === undefined ? {} : { stdin })).code).toBe(0);
  expect(origin.requests.map(({ prompts }) => prompts)).toEqual([[prompt]]);
});

test('refuses a text and a file that are not UTF-8, in which characters would be replaced', async () => {
  const bytes = Buffer.from([97, 255]);
  const grammar = path.join(newDirectory(), 'answer.gbnf');
  writeFileSync(grammar, bytes);
  const refused = await Promise.all([complete([], { stdin: bytes }), complete(['Hi', '--grammar', grammar])]);
  expect(refused).toMatchObject([
    { code: 1, stderr: 'continuo: The text of the standard input is not UTF-8\n' },
    { code: 1, stderr: `continuo: ${grammar} is not UTF-8\n` },
  ]);
});

test('asks for a text if there is neither an argument nor a pipe', async () => {
  expect(await complete([])).toEqual({
    code: 2,
    stdout: '',
    stderr: 'continuo: There is no text. Give one, or - to type it and end with Ctrl-D.\n',
  });
});

test('sends the options as fields of the request', async () => {
  const folder = newDirectory();
  const schema = path.join(folder, 'schema.json');
  const grammar = path.join(folder, 'answer.gbnf');
  writeFileSync(schema, '{"type":"integer"}');
  writeFileSync(grammar, 'root ::= "yes" | "no"');
  const sampling = [
    '--temperature',
    '0.5',
    '--top-p',
    '0.9',
    '--top-k',
    '7',
    '--min-p',
    '0.1',
    '--seed',
    '-1',
  ];
  await complete(['Hi', ...sampling, '--stop', 'a', '--stop', 'b', '--schema', schema, '--max-tokens', '3']);
  await complete(['Hi', '--grammar', grammar, '--set', 'mirostat=2', '--set', 'user=me']);
  await complete(['Hi', '--regex', '[0-9]+', '--echo', '--ignore-eos', '--set', 'cache_prompt=false']);
  await complete(['Hi', '--suffix', 'end']);
  const [first, second, third, fourth] = origin.requests;
  expect(fourth?.suffix).toBe('end');
  expect(first).toMatchObject({
    maxTokens: 3,
    stop: ['a', 'b'],
    constraint: { type: 'json_schema', value: '{"type":"integer"}' },
    sampling: { temperature: 0.5, topP: 0.9, topK: 7, minP: 0.1 },
  });
  expect(second).toMatchObject({ constraint: { type: 'gbnf' }, sampling: { mirostat: 2 } });
  expect(third).toMatchObject({
    constraint: { type: 'regex' },
    echo: true,
    ignoreEos: true,
    cachePrompt: false,
  });
});

test.each([
  [['--schema', 'a', '--regex', 'b'], 2, /'--schema <file>' cannot be used with option '--regex <pattern>'/],
  [['--temperature', 'warm'], 2, /'warm' is invalid.*Expected a number/],
  [['-n', '0'], 2, /Expected a whole number of at least 1/],
  [['--tempo', '1'], 2, /unknown option '--tempo'/],
  [['--set', 'nothing'], 2, /Expected field=value/],
  [['--schema', '/no/file'], 1, /^continuo: \/no\/file cannot be read/],
  [['--schema', MAIN], 1, /main\.ts is not JSON/],
  [['--temperature', '9'], 1, /^continuo: Invalid 'temperature': .* <= 2, but got 9 instead\.\n$/],
  [['--model', 'none'], 1, /^continuo: The model 'none' does not exist/],
])('%j ends with exit code %i and says why', async (words, code, message) => {
  const result = await complete(['Hi', ...words]);
  expect([result.code, result.stdout]).toEqual([code, '']);
  expect(result.stderr).toMatch(message);
});

test('numbers keep all their digits', async () => {
  const schema = path.join(newDirectory(), 'schema.json');
  writeFileSync(schema, '{"const":9007199254740993}');
  await complete(['Hi', '--seed', '9223372036854775807', '--schema', schema]);
  await complete(['Hi', '--set', 'seed=9007199254740993']);
  expect(origin.requests).toMatchObject([
    { sampling: { seed: '9223372036854775807' }, constraint: { value: '{"const":9007199254740993}' } },
    { sampling: { seed: '9007199254740993' } },
  ]);
});

test('several completions are written one after the other', async () => {
  expect((await complete(['Hi', '-n', '3', '--max-tokens', '2'])).stdout).toBe(
    '--- 1 of 3 ---\n 0 two\n--- 2 of 3 ---\n 1 two\n--- 3 of 3 ---\n 2 two',
  );
});

test('--set overrides the other options, but not the form of the answer', async () => {
  const words = ['Hi', '--max-tokens', '1', '--set', 'n=2', '--set', 'stream=true'];
  expect((await complete(words)).stdout).toBe('--- 1 of 2 ---\n 0\n--- 2 of 2 ---\n 1');
  expect(JSON.parse((await complete([...words, '--json'])).stdout).choices).toHaveLength(2);
});

test('--json prints the answer of the API', async () => {
  const { stdout } = await complete(['Hi', '-n', '2', '--max-tokens', '2', '--json', '--logprobs']);
  const { object, choices } = JSON.parse(stdout);
  expect([object, choices.map(({ text }: { text: string }) => text)]).toEqual([
    'text_completion',
    [' 0 two', ' 1 two'],
  ]);
  expect(choices[0].logprobs.token_logprobs).toHaveLength(2);
});

test('--logprobs colors tokens by their probability on a terminal and explains the colors', async () => {
  origin.script = (request, wire) => {
    const logprobs = [0.9, 0.3, 0.06, 0.01].map((probability, index) => ({
      id: index,
      bytes: ` t${index}`,
      logprob: Math.log(probability),
      topLogprobs: [],
    }));
    const event = { type: 'token', choice: 0, text: ' t0 t1 t2 t3', completionTokens: 4, logprobs } as const;
    wire.send(...acceptedFor(request), event, finishOf(0, 'length', 4), doneFor(request, 4));
    wire.end();
  };
  const { stdout } = await complete(['Hi', '--logprobs'], { terminal: COLORS });
  const [text, legend] = stdout.split('\n');
  expect(text).toBe(paint(32, ' t0') + paint(33, ' t1') + paint(35, ' t2') + paint(31, ' t3'));
  expect(legend).toBe(
    `Probability: ${paint(32, '75 % or more')}, ${paint(33, '25 % or more')}, ${paint(35, '5 % or more')}, ${paint(31, 'less')}`,
  );
});

test('without colors, --logprobs writes one line per token with its alternatives', async () => {
  for (const terminal of [undefined, NO_COLORS]) {
    const run = terminal === undefined ? {} : { terminal };
    const { stdout } = await complete(['Hi', '--logprobs', '--max-tokens', '2'], run);
    expect(stdout).toBe(' 90.5 %  " 0"   33.3 % " alt1"\n 81.9 %  " two"   30.1 % " alt1"\n');
  }
});

test('the bytes of one character, in two tokens, are colored without being changed', async () => {
  origin.script = (request, wire) => {
    const logprobs = ['\u00c3', '\u00bc', '!'].map((bytes, id) => ({
      id,
      bytes,
      logprob: -3,
      topLogprobs: [],
    }));
    const event = { type: 'token', choice: 0, text: 'ü!', completionTokens: 3, logprobs } as const;
    wire.send(...acceptedFor(request), event, finishOf(0, 'length', 3), doneFor(request, 3));
    wire.end();
  };
  const { stdout } = await complete(['Hi', '--logprobs'], { terminal: COLORS });
  expect(stdout.split('\n')[0]?.replaceAll(new RegExp(`${ESCAPE}\\[\\d+m`, 'g'), '')).toBe('ü!');
});

test('ends the last line on a terminal only', async () => {
  const words = ['Hi', '--max-tokens', '1'];
  expect((await complete(words)).stdout).toBe(' 0');
  expect((await complete(words, { terminal: COLORS })).stdout).toBe(' 0\n');
});

test('an error in the stream ends with exit code 1, a lost connection with 3', async () => {
  const written = Promise.withResolvers<void>();
  origin.script = async (request, wire) => {
    wire.send(...acceptedFor(request), tokenEvent(1));
    await written.promise;
    wire.die();
  };
  const failed = await complete(['Hi'], { onWrite: () => written.resolve() });
  expect(failed).toMatchObject({ code: 1, stdout: ' t1' });
  const cut: typeof fetch = async (...request) => {
    const text = await (await fetch(...request)).text();
    return new Response(text.slice(0, text.indexOf('\n\n') + 2));
  };
  expect(await complete(['Hi'], { fetch: cut })).toMatchObject({
    code: 3,
    stderr: 'continuo: The connection was lost before the end of the completion.\n',
  });
});

test('shows how long to wait after a refusal', async () => {
  const busy = { error: { message: 'Busy.', type: 'server_error', param: null, code: 'busy' } };
  const ask = () => Promise.resolve(Response.json(busy, { status: 503, headers: { 'retry-after': '7' } }));
  expect(await complete(['Hi'], { fetch: ask })).toMatchObject({
    code: 1,
    stderr: 'continuo: Busy. Try again in 7 s.\n',
  });
});

test('models lists what the server offers', async () => {
  const run = { environment: environment() };
  expect((await runCli(['models'], run)).stdout).toMatch(/org\/tiny.*2048.*loaded/);
  const { stdout } = await runCli(['models', '--json'], run);
  expect(JSON.parse(stdout)).toContainEqual(expect.objectContaining({ id: 'org/tiny', max_model_len: 2048 }));
});

test('reads the key from a file', async () => {
  const file = path.join(newDirectory(), 'key');
  writeFileSync(file, `${KEY}\n`);
  const run = { environment: { CONTINUO_URL: worker.url, CONTINUO_API_KEY: 'wrong' } };
  expect((await runCli(['models', '--key-file', file], run)).code).toBe(0);
  expect((await runCli(['models'], run)).stderr).toMatch(/API key/);
  expect(await runCli(['models', '--key-file', '/no/file'], run)).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/^continuo: \/no\/file cannot be read/),
  });
});

const processEnvironment = () => ({ ...bareEnvironment(), ...environment() });

test('as a process in a pipe, writes no escape codes and leaves quietly when its reader has gone', async () => {
  const options = { env: processEnvironment(), encoding: 'utf8' } as const;
  const shell = (script: string) =>
    new Promise<{ code: number | null; stdout: string; stderr: string }>((resolve) => {
      const child = spawn('bash', ['--norc', '-c', script], {
        env: { ...options.env, NODE: process.execPath, MAIN },
      });
      const output = { stdout: '', stderr: '' };
      for (const name of ['stdout', 'stderr'] as const)
        child[name].setEncoding('utf8').on('data', (text: string) => {
          output[name] += text;
        });
      child.on('close', (code) => resolve({ code, ...output }));
    });
  const piped = await shell('printf Hi | "$NODE" "$MAIN" complete --logprobs --max-tokens 2');
  expect(piped).toMatchObject({ code: 0, stderr: '' });
  expect(piped.stdout).toContain('" two"');
  expect(piped.stdout).not.toContain(ESCAPE);
  origin.script = (request, wire) => {
    wire.send(...acceptedFor(request));
    const flow = (): unknown => {
      if (wire.gone()) return;
      wire.send(tokenEvent(1, 'line\n'));
      return setImmediate(flow);
    };
    flow();
  };
  const cut = await shell('"$NODE" "$MAIN" complete Hi --max-tokens 99 | head -1');
  expect(cut).toMatchObject({ code: 0, stdout: 'line\n', stderr: '' });
});

const hasPseudoTerminal = spawnSync('script', ['--version']).status === 0;

test.skipIf(!hasPseudoTerminal)('on a real terminal, colors tokens unless NO_COLOR is set', async () => {
  const shown = async (more: Readonly<Record<string, string>>) => {
    const command = `"${process.execPath}" "${MAIN}" complete Hi --logprobs --max-tokens 2`;
    const env = { ...processEnvironment(), TERM: 'xterm', ...more };
    const child = spawn('script', ['-qec', command, '/dev/null'], { env });
    let text = '';
    child.stdout.setEncoding('utf8').on('data', (part: string) => {
      text += part;
    });
    await once(child, 'close');
    return text;
  };
  expect(await shown({})).toContain(paint(32, ' two'));
  const plain = await shown({ NO_COLOR: '1' });
  expect(plain).toContain('" two"');
  expect(plain).not.toContain(ESCAPE);
});

test('the bin starts the installed Node if its own cannot run TypeScript', () => {
  const run = (...flags: string[]) =>
    spawnSync(process.execPath, [...flags, BIN, 'nonsense'], {
      encoding: 'utf8',
      env: { PATH: process.env.PATH },
    });
  const direct = run();
  expect(direct).toMatchObject({ status: 2, stderr: expect.stringContaining("unknown command 'nonsense'") });
  expect(run('--no-experimental-strip-types')).toMatchObject({ status: 2, stderr: direct.stderr });
});
