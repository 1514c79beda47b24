import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import * as fc from 'fast-check';
import { beforeAll, describe, expect, test } from 'vitest';
import { type Float64Llama, float64Llama } from '../../support/float64-llama.ts';
import { forAllTests } from '../../support/for-tests.ts';
import { runs } from '../../support/random.ts';
import { BEGIN, END, startRealSystem, VOCABULARY } from '../support/real-origin.ts';
import type { Completion } from '../support/sse.ts';

/** Scoring of echoed prompts by the whole product against an independent forward pass in doubles. */

const TOLERANCE = 1e-3;
const PROMPTS = runs(64);

/** Ids that spell a letter which another id spells, too: 256 → a, 257 → b, … */
const TWIN = 256;
const LETTERS = 26;

let spelling: ReadonlyMap<number, string>;
const system = forAllTests(() =>
  startRealSystem((directory) => {
    const file = path.join(directory, 'tokenizer.json');
    const tokenizer = JSON.parse(readFileSync(file, 'utf8'));
    for (let letter = 0; letter < LETTERS; letter += 1) {
      const content = String.fromCharCode(97 + letter);
      tokenizer.added_tokens.push({ id: TWIN + letter, content, special: false, normalized: false });
    }
    writeFileSync(file, JSON.stringify(tokenizer));
    const pairs = Object.entries(tokenizer.model.vocab as Record<string, number>);
    spelling = new Map(pairs.map(([text, id]) => [id, text]));
  }),
);
let reference: Float64Llama;
beforeAll(() => {
  reference = float64Llama.load(path.join(system.modelDirectory, 'model.onnx'));
});

/** What an answer has to call a token. */
function nameOf(id: number): string {
  if (id === BEGIN) return '<s>';
  if (id === END) return '</s>';
  if (id < 128) return String.fromCharCode(id);
  if (id < TWIN) return `bytes:\\x${id.toString(16)}`;
  return id < TWIN + LETTERS ? String.fromCharCode(97 + id - TWIN) : (spelling.get(id) ?? '');
}

function logSoftmax(logits: Float64Array): Float64Array {
  const top = logits.reduce((most, value) => Math.max(most, value));
  const total = top + Math.log(logits.reduce((sum, value) => sum + Math.exp(value - top), 0));
  return logits.map((value) => value - total);
}

/**
 * The same prompts in every run, because random ones can meet a bug in JSON.parse of Node 24 (V8 13.6). After
 * a map with the name "\\", it can read a control character such as "\u001d" in a later map as that name.
 */
const prompts = fc.sample(fc.array(fc.nat(VOCABULARY - 3), { minLength: 2, maxLength: 40, size: 'max' }), {
  numRuns: PROMPTS,
  seed: 2026,
});
const scoring = { max_tokens: 1, temperature: 0, echo: true, logprobs: 5 };

type Choice = Completion['choices'][number];
type Logprobs = NonNullable<Choice['logprobs']>;

function logprobsOf(choice: Choice | undefined): Logprobs {
  if (!choice?.logprobs) throw new Error('The choice has no logprobs.');
  return choice.logprobs;
}

describe(`scoring of ${PROMPTS} random prompts`, () => {
  let batched: readonly Choice[];
  beforeAll(async () => {
    batched = (await system.complete({ ...scoring, prompt: prompts })).choices;
  });

  test('equals a forward pass in doubles for each token and its top logprobs', () => {
    let compared = 0;
    for (const [index, ids] of prompts.entries()) {
      const { token_logprobs, top_logprobs, tokens } = logprobsOf(batched[index]);
      expect(tokens).toHaveLength(ids.length + 1);
      expect(tokens.slice(0, -1)).toEqual(ids.map(nameOf));
      expect([token_logprobs[0], top_logprobs[0]]).toEqual([null, null]);
      const rows = reference.forward(ids).map(logSoftmax);
      for (const [at, row] of rows.entries()) {
        const next = ids[at + 1];
        const value = token_logprobs[at + 1] ?? Number.NaN;
        const expected = next === undefined ? Math.max(...row) : (row[next] ?? Number.NaN);
        expect(Math.abs(value - expected)).toBeLessThan(TOLERANCE);
        const ranked = [...row.keys()].sort((a, b) => row[b]! - row[a]!);
        // Of the fifth and a sixth as good, rounding decides which one is listed.
        const best = ranked.slice(0, 5).filter((id) => row[id]! - row[ranked[5]!]! > TOLERANCE);
        for (const id of best) {
          // An id whose text names another one is named by its number.
          const names = [`token_id:${id}`, nameOf(id)];
          const shown = names.map((name) => top_logprobs[at + 1]?.[name]).find((one) => one !== undefined);
          expect(Math.abs((shown ?? Number.NaN) - row[id]!)).toBeLessThan(TOLERANCE);
          compared += 1;
        }
      }
    }
    expect(compared).toBeGreaterThan(PROMPTS * 5 * 10);
  });

  test('prompt_logprobs has each token first, with its rank in the whole vocabulary', async () => {
    const compared = { near: 0, far: 0 };
    for (const prompt of prompts.slice(0, 8)) {
      const response = await system.post({ model: 'default', prompt, max_tokens: 0, prompt_logprobs: 2 });
      const text = /"prompt_logprobs":(\[.*?\}\}?\])/.exec(await response.text())?.[1] ?? '';
      const positions = text
        .split(/null|(?<=\}\}),/)
        .filter((part) => part.startsWith('{') || part.startsWith(',{'));
      const rows = reference.forward(prompt).map(logSoftmax);
      expect(positions).toHaveLength(prompt.length - 1);
      for (const [at, position] of positions.entries()) {
        const entries = [...position.matchAll(/"(\d+)":\{"logprob":[-\d.e]+,"rank":(\d+)/g)].map(
          ([, id, rank]) => [Number(id), Number(rank)],
        );
        const own = prompt[at + 1]!;
        const value = rows[at]![own]!;
        expect(entries[0]?.[0]).toBe(own);
        expect(entries.slice(1).map(([, rank]) => rank)).toEqual(
          [1, 2].filter((rank) => rank !== entries[0]?.[1]),
        );
        const above = rows[at]!.filter((other) => other > value + TOLERANCE).length;
        const around = rows[at]!.filter((other) => Math.abs(other - value) <= TOLERANCE).length;
        expect(entries[0]?.[1]).toBeGreaterThan(above);
        expect(entries[0]?.[1]).toBeLessThanOrEqual(above + around);
        compared[above < 20 ? 'near' : 'far'] += 1;
      }
    }
    expect(compared.near).toBeGreaterThan(5);
    expect(compared.far).toBeGreaterThan(50);
  });

  test('is bit-identical one by one, in groups of eight and all at once', async () => {
    const alone = [];
    for (const prompt of prompts) alone.push((await system.complete({ ...scoring, prompt })).choices[0]);
    expect(alone.map((choice, index) => ({ ...choice, index }))).toEqual(batched);
    const eights = [];
    for (let start = 0; start < PROMPTS; start += 8) {
      eights.push(system.complete({ ...scoring, prompt: prompts.slice(start, start + 8) }));
    }
    const choices = (await Promise.all(eights)).flatMap((answer) => answer.choices);
    expect(choices.map((choice, index) => ({ ...choice, index }))).toEqual(batched);
  });

  test('needs no generated token: max_tokens 0 gives the same values', async () => {
    const { choices, usage } = await system.complete({ ...scoring, max_tokens: 0, prompt: prompts });
    expect(usage.completion_tokens).toBe(0);
    for (const [index, choice] of choices.entries()) {
      const whole = logprobsOf(batched[index]);
      expect(logprobsOf(choice)).toEqual({
        tokens: whole.tokens.slice(0, -1),
        token_logprobs: whole.token_logprobs.slice(0, -1),
        top_logprobs: whole.top_logprobs.slice(0, -1),
        text_offset: whole.text_offset.slice(0, -1),
      });
    }
  });

  test('gives a most likely token the highest value of its map, bit for bit', () => {
    let greedy = 0;
    for (const [index, ids] of prompts.entries()) {
      const { token_logprobs, top_logprobs } = logprobsOf(batched[index]);
      const rows = reference.forward(ids);
      for (const [at, row] of rows.slice(0, -1).entries()) {
        const likeliest = row.indexOf(Math.max(...row));
        const largest = Math.max(...Object.values(top_logprobs[at + 1] ?? {}));
        expect(token_logprobs[at + 1] === largest).toBe(ids[at + 1] === likeliest);
        greedy += ids[at + 1] === likeliest ? 1 : 0;
      }
      expect(token_logprobs.at(-1)).toBe(Math.max(...Object.values(top_logprobs.at(-1) ?? {})));
    }
    expect(greedy).toBeGreaterThan(0);
  });
});

test('all ids are in the map: of those with one text, the token itself or the best has it', async () => {
  const headers = { 'x-dialect': 'vllm' };
  const score = async (fields: object): Promise<Completion> => {
    const body = { model: 'default', ...scoring, logprobs: 20, prompt: prompts, ...fields };
    return (await (await system.worker.post(body, { headers })).json()) as Completion;
  };
  const byId = await score({ return_tokens_as_token_ids: true });
  const byName = await score({});
  const idOf = (name: string) => Number(name.replace('token_id:', ''));
  let [collisions, own] = [0, 0];
  for (const [index, choice] of byId.choices.entries()) {
    const lossless = logprobsOf(choice);
    const named = logprobsOf(byName.choices[index]);
    expect(named.token_logprobs).toEqual(lossless.token_logprobs);
    for (const [at, map] of lossless.top_logprobs.entries()) {
      if (map === null) continue;
      const best = Object.entries(map).toSorted(([, a], [, b]) => b - a);
      const holders = new Map(best.toReversed().map(([name]) => [nameOf(idOf(name)), name]));
      const likeliest = holders.get(named.tokens[at] ?? '');
      holders.set(named.tokens[at] ?? '', lossless.tokens[at] ?? '');
      const expected = best.map(([name, value]) => {
        const text = nameOf(idOf(name));
        return [holders.get(text) === name ? text : name, value];
      });
      expect(named.top_logprobs[at]).toEqual(Object.fromEntries(expected));
      collisions += holders.size < best.length ? 1 : 0;
      own += likeliest === lossless.tokens[at] ? 0 : 1;
    }
  }
  expect(collisions).toBeGreaterThan(20);
  expect(own).toBeGreaterThan(0);
});

describe('the joined tokens are the bytes of the text', () => {
  const bytesOf = (name: string): number[] =>
    name.startsWith('bytes:')
      ? [...name.matchAll(/\\x([0-9a-f]{2})/g)].map(([, hex]) => Number.parseInt(hex ?? '', 16))
      : [...new TextEncoder().encode(name)];
  const grammar = 'root ::= [🙂-🙏ä-ü日本a-f]{9}';

  test.each([[true], [false]])('echo %s', async (echo) => {
    for (const [seed, prompt] of ['Straße 🙂', '日本語 – ünï', 'plain'].entries()) {
      const fields = { prompt, grammar, echo, logprobs: 0, max_tokens: 60, seed };
      const [choice] = (await system.complete(fields)).choices;
      const { tokens, text_offset } = logprobsOf(choice);
      const visible = tokens.filter((name) => name !== '</s>');
      expect(Buffer.from(visible.flatMap(bytesOf)).toString()).toBe(choice?.text);
      expect(choice?.text.startsWith(prompt)).toBe(echo);
      expect([...(choice?.text ?? '')]).toHaveLength(9 + (echo ? [...prompt].length : 0));
      // The offset of a token is that of its first byte's character.
      const points = [...(choice?.text ?? '')];
      let bytes = 0;
      for (const [at, name] of visible.entries()) {
        const before = Buffer.from(points.slice(0, text_offset[at]).join('')).length;
        const character = Buffer.from(points[text_offset[at] ?? 0] ?? '').length;
        expect(bytes >= before && bytes < before + character).toBe(true);
        bytes += bytesOf(name).length;
      }
    }
  });
});
