import { CASES, type FamilyCase } from '../origin/export/family-cases.ts';

/** Changed configurations of the cases of families.py, to find those that the builder reads otherwise than transformers. */

export interface Mutation {
  readonly of: FamilyCase;
  readonly config: Fields;
  /** Such as `num_key_value_heads = 4` or `rope_scaling.factor dropped`. */
  readonly change: string;
}

type Fields = Readonly<Record<string, unknown>>;

/** Fields of published files that no class of transformers has. */
const PUBLISHED: Fields = {
  ...{ n_embed: 256, d_model: 256, n_heads: 4, n_head_kv: 1, num_kv_heads: 2, attention_head_dim: 64 },
  ...{ kv_channels: 64, n_ctx: 256, seq_length: 256, max_sequence_length: 256, ffn_hidden_size: 160 },
  ...{ rotary_pct: 0.5, rotary_percent: 0.5, rope_percent: 0.5, rotary_dim: 32, rotary_emb_base: 20_000 },
  ...{ rotary_scaling_factor: 2, rope_interleaved: true, alibi: true, rotary: false, clip_qkv: 1.5 },
  ...{ scale_embeddings: true, learned_embeddings: false, normalize_attention_scores: false },
  ...{ qk_norm: true, qkv_bias: true, use_bias: true, parallel_attn: true, scale_attn_weights: false },
};

const FORMS = ['rope_scaling', 'rope_parameters', 'attn_config'];

/** Families whose code is published beside their weights only: transformers cannot compute them. */
const WITHOUT_CODE = /^(internlm2|minicpm)/;

const isObject = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** @param count how many to choose from all, by a seed that is always the same */
export function chooseMutations(count: number): Mutation[] {
  const all = CASES.filter(({ name }) => !WITHOUT_CODE.test(name)).flatMap(mutationsOf);
  const random = randomNumbers(1);
  const chosen = all.map((mutation) => ({ mutation, at: random() })).toSorted((a, b) => a.at - b.at);
  return chosen.slice(0, count).map(({ mutation }) => mutation);
}

/** Values of every field, of all cases. */
const POOL = new Map<string, unknown[]>();

function remember(fields: Fields, path = ''): void {
  for (const [name, value] of Object.entries(fields)) {
    const key = path + name;
    const known = POOL.get(key) ?? [];
    const isNew = !known.some((one) => JSON.stringify(one) === JSON.stringify(value));
    if (isNew && value !== null && known.length < 4) POOL.set(key, [...known, value]);
    if (isObject(value) && FORMS.includes(name)) remember(value, `${name}.`);
  }
}

const textOf = (config: Fields): Fields => (isObject(config.text_config) ? config.text_config : config);

for (const { config, fields } of CASES) {
  remember(textOf(config));
  if (fields !== null) remember(textOf(fields));
}
remember(PUBLISHED);

/** One field changed, dropped or added, and pairs of these. */
function mutationsOf(of: FamilyCase): Mutation[] {
  const text = textOf(of.config);
  const made = (changes: readonly Change[]): Mutation => {
    const changed = changes.reduce<Fields>((fields, { apply }) => apply(fields), text);
    const config = text === of.config ? changed : { ...of.config, text_config: changed };
    return { of, config, change: changes.map(({ name }) => name).join(' and ') };
  };
  const single = [...changesOf(text, ''), ...FORMS.flatMap((form) => innerChanges(text, form))];
  const random = randomNumbers(of.name.length);
  const pick = () => single[Math.floor(random() * single.length)]!;
  const pairs = Array.from({ length: single.length / 2 }, () => [pick(), pick()]);
  return [...single.map((one) => made([one])), ...pairs.map(made)];
}

interface Change {
  readonly name: string;
  readonly apply: (fields: Fields) => Fields;
}

function changesOf(fields: Fields, path: string): Change[] {
  const own = Object.entries(fields).filter(([name]) => name !== 'model_type');
  const sizes = own.map(([, value]) => value).filter((value) => typeof value === 'number');
  const known = [...POOL.keys()].filter((key) => key.startsWith(path)).map((key) => key.slice(path.length));
  const absent = known.filter((name) => !name.includes('.') && !Object.hasOwn(fields, name));
  const set = (name: string, value: unknown): Change => ({
    name: `${path}${name} = ${JSON.stringify(value)}`,
    apply: (before) => ({ ...before, [name]: value }),
  });
  const dropped = (name: string): Change => ({
    name: `${path}${name} dropped`,
    apply: ({ [name]: _, ...others }) => others,
  });
  return [
    ...own.flatMap(([name, value]) => [
      dropped(name),
      set(name, null),
      ...others(value).map((one) => set(name, one)),
    ]),
    ...absent.flatMap((name) => {
      const values = POOL.get(path + name)!;
      const more = typeof values[0] === 'number' ? sizes.slice(0, 4) : values.flatMap(others);
      return [...values, ...more].slice(0, 6).map((value) => set(name, value));
    }),
  ];
}

function innerChanges(fields: Fields, form: string): Change[] {
  const inner = fields[form];
  const before = isObject(inner) ? inner : {};
  return changesOf(before, `${form}.`).map(({ name, apply }) => ({
    name,
    apply: (outer) => ({ ...outer, [form]: apply(isObject(outer[form]) ? outer[form] : {}) }),
  }));
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

/** Numbers in [0, 1) of the generator mulberry32. */
function randomNumbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    const once = Math.imul(state ^ (state >>> 15), state | 1);
    const twice = once ^ (once + Math.imul(once ^ (once >>> 7), once | 61));
    return ((twice ^ (twice >>> 14)) >>> 0) / 2 ** 32;
  };
}
