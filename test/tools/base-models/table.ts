import { readFileSync } from 'node:fs';
import { errorMessage } from '../../../shared/error-details.ts';
import { type Config, needsOf } from './needs.ts';

/** docs/base-models.md: what serves each published model of base-models.jsonl. */

export interface BaseModel {
  readonly name: string;
  /** Where the fields of its configuration were found: repository:path. */
  readonly source: string;
  readonly config: Config;
  /** Of one stream and of four, measured with random weights of these sizes. */
  readonly tokensPerSecond?: readonly [one: number, four: number];
}

export const BASE_MODELS: readonly BaseModel[] = readFileSync(
  new URL('base-models.jsonl', import.meta.url),
  'utf8',
)
  .trim()
  .split('\n')
  .map((line) => JSON.parse(line) as BaseModel);

const POSITIONS = 4096;

/** The families that a test reads from GGUF too. */
const GGUF = new Set(
  readFileSync(new URL('../../origin/export/gguf/architectures.jsonl', import.meta.url), 'utf8')
    .trim()
    .split('\n')
    .map((line) => (JSON.parse(line) as { config: { model_type: string } }).config.model_type)
    .concat('mistral'),
);

/** @returns the cells after the name */
function cellsOf({ config, tokensPerSecond }: BaseModel): string[] {
  try {
    const { parameters, bytes, positions } = needsOf(config, 'int8', POSITIONS);
    const gguf = GGUF.has(typeOf(config)) ? 'yes' : '-';
    const context = positions < POSITIONS ? ` (${positions.toLocaleString('en')})` : '';
    const small = needsOf(config, 'int4', POSITIONS).bytes;
    const memory = [gigabytes(bytes) + context, gigabytes(small) + context];
    return [count(parameters), gguf, ...memory, tokensPerSecond?.join(', ') ?? '-'];
  } catch (error) {
    const [, reason = ''] = /^config\.json: (.*?)(?:; |$)/.exec(errorMessage(error)) ?? [];
    const [, type] = /^model_type is "([^"]+)"/.exec(reason) ?? [];
    return [
      '-',
      `refused: ${type === undefined ? reason.replaceAll('|', '\\|') : `\`${type}\` is unknown`}`,
      '-',
      '-',
      '-',
    ];
  }
}

/** Of the text model. */
const typeOf = ({ text_config: text, model_type: type }: Config): string =>
  String((text as Config | undefined)?.model_type ?? type);

const count = (parameters: number): string =>
  parameters < 1e9 ? `${Math.round(parameters / 1e6)} M` : `${(parameters / 1e9).toFixed(2)} B`;

const gigabytes = (bytes: number): string => (bytes / 1e9).toPrecision(bytes < 1e10 ? 2 : 3);

export const rowOf = (model: BaseModel): string =>
  `| ${[`\`${model.name}\``, ...cellsOf(model)].join(' | ')} |`;

const HEAD = `# Published names

Search this page for a published name. Each row was made from the model's configuration by the builder itself: it has
read the fields, written the graph and counted its bytes. No weights were fetched: tokens/s are those of random ones.

- A name that is not here is served if its \`model_type\` is among the [families](models.md#families-built-from-published-weights).
- *GGUF* says whether such files of the family are [read](models.md#gguf-files), too.
  Repositories with \`.bin\` files only are refused.
- Memory is that of weights, KV and states of one stream of 4,096 tokens, in GB. A smaller context is in brackets.
  Every further stream adds its KV and states. The process and its runs come on top.
- \`int8\` is the default precision on a CPU; \`owner/name:q4\` builds \`int4\`.
- Tokens/s are of one stream and of four together, in \`int8\` with all defaults, through the Worker, on [two cores of a
  machine with 23 GB](models.md#time-to-the-first-token-and-tokens-per-second). Models of the same sizes have one
  measurement; \`-\` = none.
- The hub was not asked. Where the file itself was not found, the fields come from the authors' training files, or from
  public lists of sizes. So a published file with further fields may still be refused.

| Name | Parameters | GGUF | GB, \`int8\` | GB, \`int4\` | Tokens/s |
| --- | --- | --- | --- | --- | --- |
`;

export const pageOf = (rows: readonly string[]): string => `${HEAD}${rows.join('\n')}\n`;
