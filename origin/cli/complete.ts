import { buffer } from 'node:stream/consumers';
import { decodeText, readJsonFile, readTextFile } from '@continuo/origin/config/named-file.ts';
import { CommandError, EXIT, whole, withExamples } from '@continuo/origin/terminal/program.ts';
import type { Terminal } from '@continuo/origin/terminal/terminal.ts';
import { completionRequest } from '@continuo/shared/completion.ts';
import { exactNumber, parseWithDigits } from '@continuo/shared/exact-numbers.ts';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { streamCompletion } from './api.ts';
import { CompletionWriter } from './completion-writer.ts';
import type { OpenSession } from './session.ts';

/** `continuo complete`. */

interface Parameter {
  readonly field: keyof typeof completionRequest.shape;
  readonly flags: string;
  readonly parse?: (text: string) => unknown;
}

const decimal = (text: string): number => {
  const value = Number(text);
  if (text.trim() !== '' && Number.isFinite(value)) return value;
  throw new InvalidArgumentError('Expected a number.');
};

/** A number whose digits all count, also beyond 2⁵³. */
const exact = (text: string): unknown =>
  /^-?\d+$/.test(text) ? exactNumber(String(BigInt(text))) : decimal(text);

/** Options that set one field of the request. The server checks the ranges. */
const PARAMETERS: readonly Parameter[] = [
  { field: 'max_tokens', flags: '--max-tokens <number>', parse: decimal },
  { field: 'min_tokens', flags: '--min-tokens <number>', parse: decimal },
  { field: 'temperature', flags: '-t, --temperature <number>', parse: decimal },
  { field: 'top_p', flags: '--top-p <number>', parse: decimal },
  { field: 'top_k', flags: '--top-k <number>', parse: decimal },
  { field: 'min_p', flags: '--min-p <number>', parse: decimal },
  { field: 'seed', flags: '--seed <number>', parse: exact },
  { field: 'frequency_penalty', flags: '--frequency-penalty <number>', parse: decimal },
  { field: 'presence_penalty', flags: '--presence-penalty <number>', parse: decimal },
  { field: 'repetition_penalty', flags: '--repetition-penalty <number>', parse: decimal },
  { field: 'ignore_eos', flags: '--ignore-eos' },
  { field: 'echo', flags: '--echo' },
  { field: 'suffix', flags: '--suffix <text>' },
];

const collect = (text: string, previous: readonly string[] = []): readonly string[] => [...previous, text];

const parseSchema = (text: string): unknown => parseWithDigits(text);

/** Reads `--set field=value`; a value that is not JSON is a text. */
function collectField(text: string, previous: Readonly<Record<string, unknown>> = {}) {
  const [, field, value] = /^([a-z_]\w*)=(.*)$/s.exec(text) ?? [];
  if (field === undefined || value === undefined) throw new InvalidArgumentError('Expected field=value.');
  try {
    return { ...previous, [field]: parseWithDigits(value) };
  } catch {
    return { ...previous, [field]: value };
  }
}

/** Alternatives per token that the lines of `--logprobs` show. */
const ALTERNATIVES = 2;

interface CompleteOptions {
  readonly model: string;
  readonly n: number;
  readonly stop?: readonly string[];
  readonly logprobs?: true;
  readonly schema?: string;
  readonly grammar?: string;
  readonly regex?: string;
  readonly set?: Readonly<Record<string, unknown>>;
  readonly [name: string]: unknown;
}

/** Descriptions of options begin in lower case and have no full stop. */
const asOptionHelp = (description: string): string =>
  description.charAt(0).toLowerCase() + description.slice(1).replace(/\.$/, '');

export function addCompleteCommand(program: Command, open: OpenSession): void {
  const complete = program
    .command('complete [text]')
    .description('continue a text; without a text, or with -, read it from standard input')
    .option('-m, --model <name>', 'model; default is the only or default one', 'default')
    .option('-n <number>', 'number of completions', whole(1), 1);
  for (const { field, flags, parse } of PARAMETERS) {
    const option = new Option(flags, asOptionHelp(completionRequest.shape[field].description ?? ''));
    complete.addOption(parse ? option.argParser(parse) : option);
  }
  complete
    .option('--stop <text>', 'text that ends a completion; repeatable', collect)
    .option('--logprobs', 'colour each token by its probability; without colours, print one line per token')
    .addOption(
      new Option('--schema <file>', 'JSON Schema that the text matches').conflicts(['grammar', 'regex']),
    )
    .addOption(new Option('--grammar <file>', 'GBNF grammar that the text matches').conflicts('regex'))
    .option('--regex <pattern>', 'regular expression that the text matches')
    .option('--set <field=value>', 'any other field of the request; repeatable', collectField);
  withExamples(
    complete,
    'continuo complete "Once upon a time" --max-tokens 60 --temperature 0.7',
    'printf "def fibonacci(n):" | continuo complete --temperature 0 --max-tokens 50',
    'continuo complete "The capital of France is" --logprobs',
    'continuo complete "A user: " --schema user.schema.json --max-tokens 200',
    'continuo complete "def add(a, b):" --suffix "    return c" --set cache_prompt=false',
    'continuo complete "Once" -n 3 --json',
  ).action(async (text: string | undefined, options: CompleteOptions) => {
    const { api, terminal, json } = open();
    const body = bodyOf(await readPrompt(text, terminal), options);
    if (json) {
      const response = await api.send('POST', '/v1/completions', { ...body, stream: false });
      terminal.print(JSON.stringify(await response.json(), null, 2));
      return;
    }
    const writer = new CompletionWriter(terminal, Number(body.n), options.logprobs !== undefined);
    try {
      for await (const { choices } of streamCompletion(api, body)) {
        for (const choice of choices) writer.push(choice);
      }
    } finally {
      writer.end();
    }
  });
}

/** Returns the prompt exactly as given, with the newline that a pipe may have at its end. */
async function readPrompt(text: string | undefined, { stdin }: Terminal): Promise<string> {
  if (text !== undefined && text !== '-') return text;
  if (text === undefined && stdin.isTTY) {
    throw new CommandError('There is no text. Give one, or - to type it and end with Ctrl-D.', EXIT.usage);
  }
  return decodeText(await buffer(stdin), 'The text of the standard input');
}

function bodyOf(prompt: string, options: CompleteOptions): Record<string, unknown> {
  const { model, n, stop, logprobs, schema, grammar, regex, set } = options;
  const parameters = PARAMETERS.map(({ field, flags }) => [
    field,
    options[new Option(flags).attributeName()],
  ]);
  // JSON leaves undefined fields out.
  return {
    model,
    prompt,
    n,
    ...Object.fromEntries(parameters),
    stop,
    logprobs: logprobs && ALTERNATIVES,
    json_schema: schema === undefined ? undefined : readJsonFile(schema, parseSchema),
    grammar: grammar === undefined ? undefined : readTextFile(grammar),
    regex,
    ...set,
  };
}
