import { CASES, type FamilyCase } from '../../origin/export/family-cases.ts';
import { mulberry32 } from '../../support/random.ts';

/** Changed configurations of the cases of families.py that the builder may read otherwise. */

export interface Mutation {
  readonly of: FamilyCase;
  readonly config: Fields;
  /** Such as `num_key_value_heads = 4` or `rope_scaling.factor dropped`. */
  readonly change: string;
}

type Fields = Readonly<Record<string, unknown>>;

/** Fields of published files that no class of transformers has. */
const PUBLISHED: Fields = {
  n_embed: 256,
  d_model: 256,
  n_heads: 4,
  n_head_kv: 1,
  num_kv_heads: 2,
  attention_head_dim: 64,
  kv_channels: 64,
  n_ctx: 256,
  seq_length: 256,
  max_sequence_length: 256,
  ffn_hidden_size: 160,
  rotary_pct: 0.5,
  rotary_percent: 0.5,
  rope_percent: 0.5,
  rotary_dim: 32,
  rotary_emb_base: 20_000,
  rotary_scaling_factor: 2,
  rope_interleaved: true,
  alibi: true,
  rotary: false,
  clip_qkv: 1.5,
  scale_embeddings: true,
  learned_embeddings: false,
  normalize_attention_scores: false,
  qk_norm: true,
  qkv_bias: true,
  use_bias: true,
  parallel_attn: true,
  scale_attn_weights: false,
};

/** Objects that every configuration gets, and those of them and below them whose fields are changed. */
const FORMS = ['rope_scaling', 'rope_parameters', 'attn_config'];
const OBJECTS = [...FORMS, 'full_attention', 'sliding_attention'];

/** Fields that ask transformers for other outputs: Falcon's code has another attention for them. */
const OUTPUTS = ['output_attentions', 'output_hidden_states', 'return_dict'];

/**
 * Tokens in whose place transformers puts images and sounds. In texts, Gemma 4 alone embeds them as padding,
 * which no graph of a text model does. The prompt has all tokens but the last.
 */
const PLACEHOLDER = /(image|video|audio)_token_id /;

/** Families whose code is published beside their weights only: transformers cannot compute them. */
const WITHOUT_CODE = /^(internlm2|minicpm)(-|$)/;

const isObject = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/**
 * @param count how many to choose from all, by a seed that is always the same
 * @param only a case; absent = all
 */
export function chooseMutations({ count, only }: { count: number; only?: string | undefined }): Mutation[] {
  const known = CASES.filter(({ name }) => !WITHOUT_CODE.test(name) && name === (only ?? name));
  const all = known.flatMap(mutationsOf);
  const random = mulberry32(1);
  const chosen = all.map((mutation) => ({ mutation, at: random() })).toSorted((a, b) => a.at - b.at);
  return chosen.slice(0, count).map(({ mutation }) => mutation);
}

/** Values of every field, of all cases. */
const POOL = new Map<string, unknown[]>();

function remember(fields: Fields, path = ''): void {
  for (const [name, value] of Object.entries(fields)) {
    const key = path + name;
    const known = POOL.get(key) ?? [];
    const isNew =
      !OUTPUTS.includes(name) && !known.some((one) => JSON.stringify(one) === JSON.stringify(value));
    if (isNew && value !== null && known.length < 4) POOL.set(key, [...known, value]);
    if (isObject(value) && OBJECTS.includes(name)) remember(value, `${key}.`);
  }
}

const textOf = (config: Fields): Fields => (isObject(config.text_config) ? config.text_config : config);

for (const { config, fields } of CASES) {
  remember(textOf(config));
  if (fields !== null) remember(textOf(fields));
}
remember(PUBLISHED);

/** One field changed, dropped or added, and pairs of these, in both published forms. */
function mutationsOf(of: FamilyCase): Mutation[] {
  return [of.config, ...(of.fields === null ? [] : [of.fields])].flatMap((config) => changed(of, config));
}

function changed(of: FamilyCase, config: Fields): Mutation[] {
  const { text_config: text, vision_config: _, ...others } = config;
  const all = isObject(text)
    ? [...within('text_config', allChanges(text)), ...ownChanges(others)]
    : allChanges(config);
  const single = all.filter(({ name }) => !(of.name.startsWith('gemma4') && PLACEHOLDER.test(name)));
  const random = mulberry32(of.name.length);
  const pick = () => single[Math.floor(random() * single.length)]!;
  const pairs = Array.from({ length: single.length / 2 }, () => [pick(), pick()]);
  return [...single.map((one) => [one]), ...pairs].map((changes) => ({
    of,
    config: changes.reduce((fields, { apply }) => apply(fields), config),
    change: changes.map(({ name }) => name).join(' and '),
  }));
}

interface Change {
  readonly name: string;
  readonly apply: (fields: Fields) => Fields;
}

/** @param path of this object in the decoder's configuration, such as `rope_scaling.` */
function allChanges(fields: Fields, path = ''): Change[] {
  const objects = Object.keys(fields).filter((name) => OBJECTS.includes(name) && isObject(fields[name]));
  const forms = path === '' ? new Set([...FORMS, ...objects]) : objects;
  const inner = [...forms].flatMap((form) => {
    const before = fields[form];
    return within(form, allChanges(isObject(before) ? before : {}, `${path}${form}.`));
  });
  return [...ownChanges(fields), ...addedFields(fields, path), ...inner];
}

/** Changes of an inner object. */
const within = (form: string, changes: readonly Change[]): Change[] =>
  changes.map(({ name, apply }) => ({
    name: `${form}.${name}`,
    apply: (fields) => ({ ...fields, [form]: apply(isObject(fields[form]) ? fields[form] : {}) }),
  }));

const set = (name: string, value: unknown): Change => ({
  name: `${name} = ${JSON.stringify(value)}`,
  apply: (fields) => ({ ...fields, [name]: value }),
});

const dropped = (name: string): Change => ({
  name: `${name} dropped`,
  apply: ({ [name]: _, ...remaining }) => remaining,
});

const ownChanges = (fields: Fields): Change[] =>
  Object.entries(fields)
    .filter(([name]) => ![...OUTPUTS, 'model_type'].includes(name))
    .flatMap(([name, value]) => [
      dropped(name),
      set(name, null),
      ...others(value).map((one) => set(name, one)),
    ]);

function addedFields(fields: Fields, path: string): Change[] {
  const sizes = Object.values(fields).filter((value) => typeof value === 'number');
  const known = [...POOL.keys()].filter((key) => key.startsWith(path)).map((key) => key.slice(path.length));
  const absent = known.filter((name) => !name.includes('.') && !Object.hasOwn(fields, name));
  return absent.flatMap((name) => {
    const values = POOL.get(path + name)!;
    const more = typeof values[0] === 'number' ? sizes.slice(0, 4) : values.flatMap(others);
    return [...values, ...more].slice(0, 6).map((value) => set(name, value));
  });
}

/** Other values of the same type. */
function others(value: unknown): unknown[] {
  if (typeof value === 'boolean') return [!value];
  if (typeof value === 'number')
    return [value * 2, Number.isInteger(value) ? Math.ceil(value / 2) : value / 2, value + 1, 0, -1, 1];
  if (typeof value === 'string') return ['changed', 'relu', 'gelu', 'silu', 'default', 'linear'];
  if (!Array.isArray(value)) return [];
  return [
    value.toReversed(),
    value.slice(1),
    [...value, ...value],
    value.map((one) => others(one)[0] ?? one),
  ];
}
