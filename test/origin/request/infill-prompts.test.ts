import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { FAMILIES } from '../../../origin/infill/families.ts';
import { assemble, cutToFit, findInfill } from '../../../origin/infill/infill.ts';
import { infillSetting } from '../../../origin/infill/template.ts';
import { textsOf } from '../../../origin/model/config/model-directory.ts';
import { Tokenizer } from '../../../origin/tokenizer/tokenizer.ts';
import type { GenerationRequest } from '../../../shared/generation.ts';
import {
  byteLevelDirectory,
  byteLevelTokenizer,
  modelDirectory,
  sentencePieceDirectory,
} from '../tokenizer/fixtures.ts';
import { prepare, servedModel } from './served-models.ts';

/** Marker sequences as the model authors publish them; P and S stand for the texts. */
const PUBLISHED = {
  'Qwen2.5-Coder': ['<|fim_prefix|>', 'P', '<|fim_suffix|>', 'S', '<|fim_middle|>'],
  StarCoder2: ['<fim_prefix>', 'P', '<fim_suffix>', 'S', '<fim_middle>'],
  SantaCoder: ['<fim-prefix>', 'P', '<fim-suffix>', 'S', '<fim-middle>'],
  CodeLlama: ['▁<PRE>', 'P', '▁<SUF>', 'S', '▁<MID>'],
  'DeepSeek-Coder': ['<｜fim▁begin｜>', 'P', '<｜fim▁hole｜>', 'S', '<｜fim▁end｜>'],
  Codestral: ['[SUFFIX]', 'S', '[PREFIX]', 'P'],
  'Seed-Coder': ['<[fim-suffix]>', 'S', '<[fim-prefix]>', 'P', '<[fim-middle]>'],
  CodeGeeX4: ['<|code_suffix|>', 'S', '<|code_prefix|>', 'P', '<|code_middle|>'],
  'Continuo Mini': ['<|gap_prefix|>', '<|gap_suffix|>', 'S', '<|gap_middle|>', 'P'],
  'GLM-4.5': ['<|code_prefix|>', 'P', '<|code_suffix|>', 'S', '<|code_middle|>', '<think>'],
} as const;

const isMarker = (text: string) => text !== 'P' && text !== 'S';
const directoryWith = (texts: readonly string[]) =>
  modelDirectory({
    'tokenizer.json': byteLevelTokenizer(
      texts.map((content, index) => ({ id: 500 + index, content, special: false })),
    ),
  });
const tokensOf = async (changes: Partial<GenerationRequest>, served: ReturnType<typeof servedModel>) =>
  Array.from((await prepare(changes, served)).submission.prompts[0]?.tokens ?? []);

describe('finds templates by the text of their tokens', () => {
  test.each(Object.entries(PUBLISHED))('%s', async (name, sequence) => {
    const markers = sequence.filter(isMarker);
    const served = servedModel(directoryWith(markers));
    const encode = (text: string) =>
      served.tokenizer.encode(text, { addSpecialTokens: false, parseSpecial: false });
    const expected = sequence
      .slice(0, name === 'GLM-4.5' ? 5 : undefined)
      .flatMap((part) => (isMarker(part) ? (served.tokenizer.idOf(part) ?? -1) : encode(`${part} text`)));
    expect(await tokensOf({ prompts: ['P text'], suffix: 'S text' }, served)).toEqual(expected);
  });

  test('no family is shadowed by an earlier one', () => {
    for (const { template, requires = [], models } of FAMILIES) {
      const texts = [template.prefix, template.suffix, template.middle].filter((text) => text !== null);
      const tokenizer = Tokenizer.of(textsOf(directoryWith([...texts, ...requires])));
      expect([models, findInfill(tokenizer, 'auto')?.layout]).toEqual([models, template.layout]);
    }
  });

  test('a vocabulary without all markers has no template', () => {
    const tokenizer = Tokenizer.of(textsOf(directoryWith(['<|fim_prefix|>', '<|fim_suffix|>'])));
    expect(findInfill(tokenizer, 'auto')).toBeNull();
  });
});

describe('an infill', () => {
  const model = servedModel(byteLevelDirectory());

  test('treats markers inside the texts as text', async () => {
    const tokens = await tokensOf({ prompts: ['a<|fim_middle|>b'], suffix: '<|endoftext|>' }, model);
    expect(tokens.filter((id) => id < 4)).toEqual([1, 2, 3]);
  });

  test('stops on every marker and on the end token', async () => {
    const { submission } = await prepare({ suffix: 'x', stopTokenIds: [9] }, model);
    expect(model.tokenizer.eosIds).toEqual([0]);
    expect([...submission.endTokenIds].sort((a, b) => a - b)).toEqual([1, 2, 3]);
    expect(submission.stopTokenIds).toEqual([9]);
    const named = await prepare({ suffix: 'x', stop: ['<|endoftext|>'] }, model);
    expect(named.submission.stopTokenIds).toContain(0);
  });

  test('reports a marker that ended it as the stop string that the client named', async () => {
    const finish = { type: 'finish', choice: 0, reason: 'stop', stopReason: 3, completionTokens: 1 } as const;
    const reported = async (changes: Partial<GenerationRequest>) =>
      (await prepare({ suffix: 'x', ...changes }, model)).restore(finish);
    expect(await reported({ stopTokenIds: [3] })).toEqual(finish);
    expect(await reported({ stop: ['<|fim_middle|>'] })).toEqual({ ...finish, stopReason: '<|fim_middle|>' });
  });

  test('takes a prompt of ids, and the same suffix for every prompt', async () => {
    const { submission } = await prepare({ prompts: [[50, 51], [52]], suffix: 'h' }, model);
    const [h] = model.tokenizer.encode('h', { addSpecialTokens: false, parseSpecial: false });
    expect(submission.prompts.map(({ tokens }) => Array.from(tokens))).toEqual([
      [1, 50, 51, 2, h, 3],
      [1, 52, 2, h, 3],
    ]);
  });

  test('may start at the beginning of a file', async () => {
    expect((await tokensOf({ prompts: [''], suffix: 'h' }, model)).slice(0, 2)).toEqual([1, 2]);
  });

  test('echoes the prompt without its template', async () => {
    const { submission, preamble } = await prepare(
      { prompts: ['hello', [104 + 4]], suffix: 'x', echo: true },
      model,
    );
    expect(submission.echo).toBe(false);
    expect(preamble.slice(1)).toMatchObject([
      { type: 'prompt', prompt: 0, text: 'hello' },
      { type: 'prompt', prompt: 1, ids: [108] },
    ]);
  });

  test('with an empty suffix is a plain completion', async () => {
    expect(await tokensOf({ prompts: ['hello'], suffix: '' }, model)).not.toContain(1);
  });

  test('refuses a text that is too long, or keeps the end of P and the start of S, 3 : 1', async () => {
    const long = { prompts: [Array.from({ length: 200 }, (_, i) => 10 + i)], suffix: 'é '.repeat(40) };
    await expect(prepare(long, model)).rejects.toMatchObject({ code: 'context_length_exceeded' });
    const { submission, preamble } = await prepare(
      { ...long, truncatePromptTokens: -1, maxTokens: 5 },
      model,
    );
    expect(preamble[0]).toEqual({ type: 'accepted', model: 'tiny', promptTokens: [59], cutPrompts: [0] });
    const tokens = Array.from(submission.prompts[0]?.tokens ?? []);
    expect(tokens.length).toBe(64 - 5);
    const [suffixAt, middleAt] = [tokens.indexOf(2), tokens.indexOf(3)];
    expect(tokens.slice(1, suffixAt)).toEqual(long.prompts[0]?.slice(-(suffixAt - 1)));
    expect([suffixAt - 1, middleAt - suffixAt - 1]).toEqual([42, 14]);
  });

  test('refuses models without a template, and echoed logprobs', async () => {
    const without = { ...model, infill: null };
    const refused = { status: 400, code: 'unsupported_parameter', param: 'suffix' };
    await expect(prepare({ suffix: 'x' }, without)).rejects.toMatchObject(refused);
    await expect(prepare({ suffix: 'x', echo: true, promptTopLogprobs: 0 }, model)).rejects.toMatchObject(
      refused,
    );
  });
});

describe('an infill with further parts', () => {
  const FILES = [
    { name: 'a.py', text: 'first\n' },
    { name: 'b.py', text: 'second' },
  ];
  const marked = (texts: readonly string[], contextLength?: number) =>
    servedModel(directoryWith(texts), contextLength);
  const BARRED = ['<|fim_prefix|>', '<|fim_suffix|>', '<|fim_middle|>'];
  const QWEN = [...BARRED, '<|repo_name|>', '<|file_sep|>'];
  const infillOf = async (
    changes: Partial<GenerationRequest>,
    served: ReturnType<typeof servedModel>,
  ): Promise<string> => {
    const tokens = await tokensOf({ suffix: 'S', prompts: ['P'], ...changes }, served);
    return served.tokenizer.decode(tokens, { skipSpecialTokens: false });
  };

  test('follows the documented pattern of a repository if the vocabulary has its markers', async () => {
    expect(await infillOf({ infill: { middle: 'M', files: FILES } }, marked(QWEN, 256))).toBe(
      '<|repo_name|>myproject\n<|file_sep|>a.py\nfirst\n<|file_sep|>b.py\nsecond\n<|file_sep|>filename\n' +
        '<|fim_prefix|>P<|fim_suffix|>S<|fim_middle|>M',
    );
  });

  test('puts plain files first if it lacks one of the markers', async () => {
    expect(await infillOf({ infill: { middle: 'M', files: FILES } }, marked(QWEN.slice(0, 4), 256))).toBe(
      'first\nsecond\n<|fim_prefix|>P<|fim_suffix|>S<|fim_middle|>M',
    );
  });

  test('without files is the plain template with the middle behind it', async () => {
    expect(await infillOf({ infill: { middle: 'M', files: [] } }, marked(QWEN))).toBe(
      '<|fim_prefix|>P<|fim_suffix|>S<|fim_middle|>M',
    );
  });

  test('keeps its template and stops if all texts are empty', async () => {
    const empty = { prompts: [''], suffix: '', infill: { middle: '', files: [] } };
    const served = marked(BARRED);
    expect(await infillOf(empty, served)).toBe(BARRED.join(''));
    expect((await prepare(empty, served)).submission.endTokenIds).toHaveLength(3);
  });

  test('puts the middle after the prefix in templates without a middle marker', async () => {
    expect(await infillOf({ infill: { middle: 'M', files: [] } }, marked(['[PREFIX]', '[SUFFIX]']))).toBe(
      '[SUFFIX]S[PREFIX]PM',
    );
  });

  test('treats markers inside files and names as text', async () => {
    const files = [{ name: '<|file_sep|>', text: '<|fim_middle|>' }];
    const served = marked(QWEN, 256);
    const tokens = await tokensOf({ suffix: 'S', infill: { middle: '<|fim_prefix|>', files } }, served);
    const count = (text: string) => tokens.filter((id) => id === served.tokenizer.idOf(text)).length;
    expect(QWEN.map(count)).toEqual([1, 1, 1, 1, 2]);
  });

  test('drops the first files if not all fit, and keeps room for the text', async () => {
    const files = Array.from({ length: 9 }, (_, index) => ({ name: `${index}`, text: `${'x'.repeat(9)}` }));
    const served = marked(QWEN, 96);
    const changes = { maxTokens: 20, infill: { middle: '', files } };
    const text = await infillOf(changes, served);
    const names = [...text.matchAll(/<\|file_sep\|>(\d)/g)].map(([, name]) => name);
    expect(names.length).toBeGreaterThan(1);
    expect(names).toEqual(files.slice(-names.length).map(({ name }) => name));
    const tokens = await tokensOf({ suffix: 'S', prompts: ['P'], ...changes }, served);
    // Half of the context is for files; one more, of 13 tokens, would not have fitted.
    const ofFiles = tokens.length - 'PS'.length - BARRED.length;
    expect(ofFiles).toBeLessThanOrEqual(48);
    expect(ofFiles + 13).toBeGreaterThan(48);
  });

  test('keeps the same files whatever the other texts are, as long as these need a quarter of the context', async () => {
    const files = Array.from({ length: 9 }, (_, index) => ({ name: `${index}`, text: 'x'.repeat(9) }));
    const served = marked(QWEN, 96);
    const filesOf = async (changes: Partial<GenerationRequest>, middle = '') => {
      const text = await infillOf({ ...changes, infill: { middle, files } }, served);
      return text.slice(0, text.indexOf('<|fim_prefix|>'));
    };
    const warm = await filesOf({ prompts: [''], suffix: '', maxTokens: 0 });
    expect(warm).not.toBe('');
    expect(await filesOf({ prompts: ['p'.repeat(12)], suffix: 's'.repeat(5), maxTokens: 24 }, 'mid')).toBe(
      warm,
    );
    expect(await filesOf({ prompts: ['p'.repeat(60)], suffix: '', maxTokens: 24 })).toBe('');
  });

  test('cuts texts that are too long, and keeps at most a quarter of the context free', async () => {
    const served = marked(QWEN, 64);
    for (const [maxTokens, length] of [
      [5, 59],
      ['end', 48],
      [1_000, 48],
    ] as const) {
      const { submission } = await prepare(
        {
          prompts: ['p'.repeat(500)],
          suffix: 's'.repeat(500),
          maxTokens,
          infill: { middle: 'm', files: FILES },
        },
        served,
      );
      const [prompt] = submission.prompts;
      expect(prompt?.tokens.length).toBe(length);
      expect(prompt?.maxTokens).toBe(64 - length);
    }
  });

  test('needs a model with a template', async () => {
    const without = { ...marked(BARRED), infill: null };
    const refused = { status: 400, code: 'unsupported_parameter', param: 'suffix' };
    const infill = { middle: '', files: [] };
    await expect(prepare({ suffix: '', infill }, without)).rejects.toMatchObject(refused);
  });
});

test('a SentencePiece suffix gains no leading space, and BOS comes first', async () => {
  const markers = ['▁<PRE>', '▁<SUF>', '▁<MID>'].map((content, i) => ({
    id: 600 + i,
    content,
    special: true,
  }));
  const served = servedModel(sentencePieceDirectory({}, markers));
  const tokens = await tokensOf({ prompts: ['hello'], suffix: 'hello w' }, served);
  const spelt = tokens.map((id) => served.tokenizer.spelling(id));
  expect(spelt).toEqual(['<s>', '▁<PRE>', '▁hello', '▁<SUF>', 'h', 'el', 'lo', '▁w', '▁<MID>']);
});

describe('cutToFit', () => {
  const infill = {
    layout: ['suffix', 'S', 'prefix', 'P'],
    markers: { prefix: 1, suffix: 2, middle: null },
    endTokenIds: [],
    repository: null,
  } as const;

  test('fills the budget exactly, keeps the end of P and the start of S', () => {
    fc.assert(
      fc.property(fc.nat(40), fc.nat(40), fc.integer({ min: 2, max: 60 }), (p, s, budget) => {
        const before = Array.from({ length: p }, (_, i) => 100 + i);
        const after = Array.from({ length: s }, (_, i) => 200 + i);
        const parts = cutToFit(infill, { start: [], files: [], before, after, middle: [] }, budget);
        expect(assemble(infill, parts).length).toBe(Math.min(budget, p + s + 2));
        const kept = Array.from(parts.before);
        expect(kept).toEqual(kept.length === 0 ? [] : before.slice(-kept.length));
        expect(Array.from(parts.after)).toEqual(after.slice(0, parts.after.length));
      }),
    );
  });
});

describe("the model's own record", () => {
  const tokenizer = Tokenizer.of(textsOf(byteLevelDirectory()));

  test('overrides the families', () => {
    const record = {
      layout: ['prefix', 'suffix', 'S', 'middle', 'P'],
      prefix: 'h',
      suffix: 'e',
      middle: 'l',
      stops: ['w'],
    };
    const setting = infillSetting.parse(JSON.stringify(record));
    const infill = findInfill(tokenizer, setting);
    const id = (text: string) => tokenizer.idOf(text);
    expect(infill?.markers).toEqual({ prefix: id('h'), suffix: id('e'), middle: id('l') });
    expect(infill?.endTokenIds).toEqual(['h', 'e', 'l', 'w'].map(id));
    expect(findInfill(tokenizer, infillSetting.parse('off'))).toBeNull();
  });

  test('refuses a missing token or a malformed template', () => {
    const missing = { layout: ['prefix', 'P', 'suffix', 'S'], prefix: '<no>', suffix: 'e', middle: null };
    expect(() => findInfill(tokenizer, infillSetting.parse(JSON.stringify(missing)))).toThrow(
      /does not have/,
    );
    for (const text of ['yes', '{}', JSON.stringify({ ...missing, layout: ['P', 'S', 'prefix'] })]) {
      expect(infillSetting.safeParse(text).success).toBe(false);
    }
  });
});
