import { describe, expect, test } from 'vitest';
import { ApiError } from '../../../shared/errors.ts';
import { NEUTRAL_SAMPLING } from '../../../shared/sampling.ts';
import { parseInfill, parseNative } from '../../../worker/dialects/native-request.ts';
import { parse } from './parsing.ts';

const BOUNDS = { maxTokens: null, sequences: 256, logprobBytes: 2 ** 20 };
const MODEL = { model: 'default' };

const native = (body: Readonly<Record<string, unknown>>) =>
  parseNative({ ...MODEL, prompt: 'x', ...body }, BOUNDS);
const infill = (body: Readonly<Record<string, unknown>>) =>
  parseInfill({ ...MODEL, input_prefix: 'before', input_suffix: 'after', ...body }, BOUNDS);

function errorOf(read: () => unknown): [code: string, param: string | null, message: string] {
  try {
    read();
  } catch (thrown) {
    if (thrown instanceof ApiError) return [thrown.code, thrown.param, thrown.message];
  }
  throw new Error('was accepted');
}

describe('POST /completion', () => {
  test('reads the fields of the dialect llamacpp', () => {
    const body = { n_predict: 5, top_k: 7, n_probs: 3, stop: ['a'], seed: 4, t_max_predict_ms: 250 };
    const { parsed, options } = native(body);
    const { generation, response } = parse(body, 'llamacpp');
    expect(parsed.generation).toEqual(generation);
    expect(parsed.response).toEqual({ ...response, logprobs: null });
    expect(options).toEqual({ probabilities: 3, responseFields: [] });
  });

  test('ignores fields without a place in the response', () => {
    const fields = { echo: true, echo_last: 2, prompt_logprobs: 3, best_of: 2, stream_options: { a: 1 } };
    expect(native(fields)).toEqual(native({}));
  });

  test('sends response_fields to no other server', () => {
    const { parsed, options } = native({ response_fields: ['content', 'timings/prompt_n', ''], n_keep: 3 });
    expect(options.responseFields).toEqual(['content', 'timings/prompt_n', '']);
    expect(parsed.extra).toEqual({ n_keep: 3 });
  });

  test('refuses response_fields that are no list of texts', () => {
    const refused = (value: unknown) => errorOf(() => native({ response_fields: value })).slice(0, 2);
    expect(refused('content')).toEqual(['invalid_type', 'response_fields']);
    expect(refused([1])).toEqual(['invalid_type', 'response_fields[0]']);
  });
});

describe('POST /infill', () => {
  test('is a completion with a suffix, a middle and other files', () => {
    const { parsed } = infill({
      input_extra: [{ filename: 'a.py', text: 'a', time: [1, 2] }, { text: 'b' }],
      prompt: 'mid',
      n_predict: 3,
    });
    expect(parsed.generation).toEqual({
      ...parse({ prompt: 'before', suffix: 'after', n_predict: 3 }, 'llamacpp').generation,
      infill: {
        middle: 'mid',
        files: [
          { name: 'a.py', text: 'a' },
          { name: 'tmp', text: 'b' },
        ],
      },
    });
    expect(parsed.extra).toEqual({});
  });

  test('is an infill even if all texts are empty', () => {
    const { generation } = infill({
      input_prefix: '',
      input_suffix: '',
      prompt: null,
      input_extra: null,
    }).parsed;
    expect([generation.prompts, generation.suffix]).toEqual([[''], '']);
    expect(generation.infill).toEqual({ middle: '', files: [] });
  });

  test('names its own fields in errors', () => {
    const refused = (body: Readonly<Record<string, unknown>>) => errorOf(() => infill(body));
    for (const name of ['input_prefix', 'input_suffix']) {
      expect(refused({ [name]: undefined })).toEqual([
        'missing_required_parameter',
        name,
        `Missing required parameter: '${name}'.`,
      ]);
      expect(refused({ [name]: null })[0]).toBe('missing_required_parameter');
      expect(refused({ [name]: ['x'] }).slice(0, 2)).toEqual(['invalid_type', name]);
    }
    expect(refused({ prompt: [1] }).slice(0, 2)).toEqual(['invalid_type', 'prompt']);
    expect(refused({ input_extra: 'x' }).slice(0, 2)).toEqual(['invalid_type', 'input_extra']);
    expect(refused({ input_extra: [{}] }).slice(0, 2)).toEqual([
      'missing_required_parameter',
      'input_extra[0].text',
    ]);
    const [code, param, message] = refused({ grammar: 'root ::= "a"' });
    expect([code, param]).toEqual(['conflicting_parameters', 'input_suffix']);
    expect(message).toContain("'input_suffix' cannot be used");
  });
});

describe('the field samplers', () => {
  const fields = {
    temperature: 0.5,
    dynatemp_range: 0.1,
    top_k: 9,
    top_p: 0.9,
    min_p: 0.1,
    typical_p: 0.8,
    top_n_sigma: 2,
    xtc_probability: 0.5,
    dry_multiplier: 1,
    repeat_penalty: 1.2,
    frequency_penalty: 1,
    presence_penalty: 1,
  };
  const samplingOf = (samplers: unknown) => parse({ ...fields, samplers }, 'llamacpp').generation.sampling;
  const all = samplingOf(null);

  test('turns off the samplers that it does not name', () => {
    const { temperature, dynatempRange, minP, typicalP, topNSigma, xtcProbability, dryMultiplier } =
      NEUTRAL_SAMPLING;
    expect(samplingOf(['top_k', 'top_p', 'infill'])).toEqual({
      ...all,
      temperature,
      dynatempRange,
      minP,
      typicalP,
      topNSigma,
      xtcProbability,
      dryMultiplier,
      repetitionPenalty: 1,
      frequencyPenalty: 0,
      presencePenalty: 0,
    });
  });

  test('keeps all if it names all, by names or letters', () => {
    const names = [
      'penalties',
      'dry',
      'top_n_sigma',
      'top_k',
      'typ_p',
      'top_p',
      'min_p',
      'xtc',
      'temperature',
    ];
    expect(samplingOf(names)).toEqual(all);
    expect(samplingOf('edskypmxt')).toEqual(all);
    expect(samplingOf(undefined)).toEqual(all);
  });

  test('does not apply to Mirostat, which replaces the list', () => {
    const body = { temperature: 0.5, mirostat: 2 };
    expect(parse({ ...body, samplers: [] }).generation.sampling).toEqual(parse(body).generation.sampling);
  });
});

test('time limits of 0 or less are none', () => {
  const none = parse({}).generation;
  expect(parse({ t_max_prompt_ms: 0, t_max_predict_ms: -1 }).generation).toEqual(none);
  expect(parse({ t_max_prompt_ms: 1, t_max_predict_ms: 2 }).generation).toEqual({
    ...none,
    maxPromptMs: 1,
    maxGenerationMs: 2,
  });
});
