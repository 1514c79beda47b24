import { ApiError } from '@continuo/shared/errors.ts';
import type { TopLogprob, WirePrompt } from '@continuo/shared/generation.ts';
import { type LabelScoreRequest, labelScoreRequest } from '@continuo/shared/label-scores.ts';
import { LOWEST_LOGPROB } from '@continuo/shared/logprob.ts';
import { parseRequest } from '../dialects/parse-request.ts';
import type { ParsedCompletion } from '../dialects/parsed-completion.ts';
import { checkCount, type RequestBounds } from '../dialects/request.ts';
import type { PlainFormat } from '../generation/format/completion-format.ts';
import { type Envelope, usageObject } from '../generation/format/completion-json.ts';
import { parsedScoring } from './parsed-score.ts';

/** Writes the probabilities of labels from the one token that is generated after each item. */
export function labelFormat(request: ParsedLabels, { created, model, id }: Envelope): PlainFormat {
  const logprobsOfItems: (readonly TopLogprob[] | null | undefined)[] = [];
  return {
    add: (event) => {
      if (event.type === 'token') logprobsOfItems[event.choice] ??= event.logprobs?.[0]?.topLogprobs;
    },
    end: ({ usage }) => {
      const scores = request.parsed.generation.prompts.map((_, index) =>
        probabilities(request, index, logprobsOfItems[index]),
      );
      const common = { created, model, usage: usageObject(usage) };
      const forms: Record<LabelStyle, () => object> = {
        vllm: () => ({
          id: id.replace(/^cmpl/, 'generative-scoring'),
          object: 'list',
          data: scores.map(([score], index) => ({ index, object: 'score', score })),
        }),
        sglang: () => ({ object: 'scoring', scores }),
      };
      return JSON.stringify({ ...forms[request.style](), ...common });
    },
  };
}

function probabilities(
  request: ParsedLabels,
  index: number,
  top: readonly TopLogprob[] | null | undefined,
): readonly number[] {
  const logprobs = new Map(top?.map(([id, , logprob]) => [id, logprob]));
  const labels = request.labels.map((id) => logprobs.get(id) ?? throwUnscored(index));
  return request.softmax ? softmax(labels) : labels.map(probabilityOf);
}

const probabilityOf = (logprob: number): number => (logprob <= LOWEST_LOGPROB ? 0 : Math.exp(logprob));

/** Softmax over the listed values only; the largest is subtracted, so that one of them never underflows. */
function softmax(logprobs: readonly number[]): number[] {
  const highest = Math.max(...logprobs);
  const weights = logprobs.map((logprob) => Math.exp(logprob - highest));
  const sum = weights.reduce((total, weight) => total + weight, 0);
  return weights.map((weight) => weight / sum);
}

function throwUnscored(index: number): never {
  throw new ApiError('upstream_error', `The model server returned no logprobs for 'items[${index}]'.`);
}

/** Whose form a request and its response have. */
export type LabelStyle = 'vllm' | 'sglang';

interface ParsedLabels {
  readonly parsed: ParsedCompletion;
  readonly style: LabelStyle;
  readonly labels: readonly number[];
  readonly softmax: boolean;
}

/**
 * Parses a request for the probabilities of labels after a query and each item. One token is generated,
 * because its logprobs are those of the labels.
 * @throws ApiError 400 for the first invalid field
 */
export function parseLabels(
  body: Readonly<Record<string, unknown>>,
  { sequences }: RequestBounds,
  style: LabelStyle,
): ParsedLabels {
  const request = parseRequest(labelScoreRequest, body);
  const labels = [...new Set(request.label_token_ids)];
  checkCount('items', request.items.length, sequences);
  const parsed = parsedScoring(request, {
    prompts: request.items.map((item) => promptOf(request, item, style)),
    maxTokens: 1,
    ignoreEos: true,
    topLogprobs: 0,
    logprobTokenIds: labels,
    // Servers without token ids cannot name the labels.
    tokenIds: true,
  });
  return {
    parsed: { ...parsed, rename: (error) => renamed(error, request) },
    style,
    // vLLM counts a label once, SGLang as often as it is listed.
    labels: style === 'vllm' ? labels : request.label_token_ids,
    softmax: request.apply_softmax ?? style === 'vllm',
  };
}

const inOrder = <T>({ item_first }: LabelScoreRequest, query: T, item: T): [T, T] =>
  item_first ? [item, query] : [query, item];

/** vLLM encodes query and item separately, SGLang as one text. */
function promptOf(request: LabelScoreRequest, item: string | number[], style: LabelStyle): WirePrompt {
  const parts = inOrder<string | number[]>(request, request.query, item);
  const [first, second] = parts;
  if (style === 'sglang' && typeof first === 'string' && typeof second === 'string') return first + second;
  return parts.flat();
}

/** Converts an error about a prompt of query and item to the fields of the request. */
function renamed(error: ApiError, request: LabelScoreRequest): ApiError {
  const { param } = error;
  if (param === 'return_token_ids') return cannotScoreLabels(request.model);
  if (param === null) return error;
  const name = param === 'logprob_token_ids' ? 'label_token_ids' : nameOf(param, request);
  return error.renamed(name, error.message.replaceAll(`'${param}'`, `'${name}'`));
}

function nameOf(param: string, request: LabelScoreRequest): string {
  const { items, query } = request;
  const [prompt, ...indices] = param.split(/[[\]]+/).filter((part) => part !== '');
  if (prompt !== 'prompt') return param;
  // The origin does not number the only prompt.
  const [index = 0, part] = items.length === 1 ? [0, ...indices.map(Number)] : indices.map(Number);
  if (part === undefined) return `items[${index}]`;
  const lengthOf = (text: string | number[]): number => (typeof text === 'string' ? 1 : text.length);
  const names: [string, string] = inOrder(request, 'query', `items[${index}]`);
  const [first] = inOrder<string | number[]>(request, query, items[index] ?? '');
  return part < lengthOf(first) ? `${names[0]}[${part}]` : `${names[1]}[${part - lengthOf(first)}]`;
}

const cannotScoreLabels = (model: string): ApiError =>
  new ApiError(
    'unsupported_endpoint',
    `The server behind the model '${model}' cannot return the probabilities of token ids. Use a model of another server.`,
    { param: 'model' },
  );
