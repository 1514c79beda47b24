import { readFileSync } from 'node:fs';
import * as z from 'zod';

/** Random models of every family with transformers' logits, by test/tools/exporters/families.py. */

/** `a.{0,1}.b` is the name of `a.0.b` and `a.1.b`. */
function namesOf(name: string): string[] {
  const [, before, numbers, after] = /^([^{]*)\{([^}]*)\}(.*)$/.exec(name) ?? [];
  if (numbers === undefined) return [name];
  return numbers.split(',').flatMap((number) => namesOf(`${before}${number}${after}`));
}

const shapesSchema = z
  .record(z.string(), z.array(z.int()))
  .transform((shapes) =>
    Object.fromEntries(
      Object.entries(shapes).flatMap(([name, shape]) => namesOf(name).map((one) => [one, shape] as const)),
    ),
  );

const caseSchema = z.object({
  /** The family and, after a hyphen, what is special. */
  name: z.string(),
  /** As a published checkpoint writes it. */
  config: z.record(z.string(), z.unknown()),
  /** The same with every field that transformers has for the family; null if it does not have the family. */
  fields: z.record(z.string(), z.unknown()).nullable(),
  /** Shapes by name. */
  tensors: shapesSchema,
  /** Greedy tokens after the first `length` tokens of the prompt. */
  continuations: z.array(z.object({ length: z.int(), tokens: z.array(z.int()) })),
  /** Logits of the first tokens in float32, base64, after the token at a position of the prompt. */
  rows: z.array(z.object({ position: z.int(), logits: z.base64() })),
});

export type FamilyCase = z.infer<typeof caseSchema>;

const [head = '', ...lines] = readFileSync(new URL('./families.jsonl', import.meta.url), 'utf8')
  .trim()
  .split('\n');

export const PROMPT: readonly number[] = z
  .object({ prompt: z.array(z.int()) })
  .parse(JSON.parse(head)).prompt;

export const CASES: readonly FamilyCase[] = lines.map((line) => caseSchema.parse(JSON.parse(line)));

export const floatsOf = (base64: string): Float32Array =>
  new Float32Array(Uint8Array.from(Buffer.from(base64, 'base64')).buffer);
