import type { InfillFile, WirePrompt } from '@continuo/shared/generation.ts';
import { assemble, cutToFit, type Infill } from '../infill/infill.ts';
import { CONTINUING, PLAIN } from '../tokenizer/tokenizer.ts';
import { boundedText, encodePrompt, type PromptContext, type TokenizedPrompt } from './prompt.ts';

/**
 * Assembles an infill by the model's fill-in-the-middle template. If it exceeds the budget, other files go
 * first, the first of them first. Echo shows the prefix only.
 */
export async function infillPrompt(
  prompt: WirePrompt,
  infill: Infill,
  context: PromptContext,
): Promise<TokenizedPrompt> {
  const { request, model, budget } = context;
  const { tokenizer } = model;
  const before = await encodePrompt(prompt, context, PLAIN);
  const whole = {
    start: tokenizer.addedIds(request.addSpecialTokens),
    files: [],
    before,
    after: await encodeText(request.suffix ?? '', 'start', context),
    middle: await encodeText(request.infill?.middle ?? '', 'end', context),
  };
  const parts = budget === null ? whole : cutToFit(infill, whole, budget);
  const left = (budget ?? Number.POSITIVE_INFINITY) - assemble(infill, parts).length;
  const room = Math.min(left, Math.floor(model.contextLength * FILES_SHARE));
  const files = await encodeFiles(request.infill?.files ?? [], infill, room, context);
  const ids = Array.from(parts.before);
  const isWholeText = typeof prompt === 'string' && ids.length === before.length;
  const text = isWholeText ? prompt : tokenizer.decode(ids, request);
  return {
    tokens: Int32Array.from(assemble(infill, { ...parts, files })),
    echo: { kind: 'fixed', text, ids },
    images: [],
    isCut: ids.length < before.length || parts.after.length < whole.after.length,
  };
}

/**
 * Encodes a text that follows a marker. It may continue a line.
 * @param kept the end of a text that is too long which matters
 */
function encodeText(
  whole: string,
  kept: 'start' | 'end',
  context: PromptContext,
): Promise<ArrayLike<number>> {
  return context.model.encoder.encode(boundedText(whole, kept, context), CONTINUING, context.caller);
}

/**
 * Largest part of the context for other files. If their room depended on the other texts, each key press
 * could drop a file and make the cached prefix useless, as could the first infill after a request that warms
 * the cache.
 */
const FILES_SHARE = 0.5;

/** llama.cpp's server documents these names in its pattern. Requests name neither repository nor file. */
const REPOSITORY = 'myproject';
const CURRENT_FILE = 'filename';

/** Returns the tokens of the last files that fit, in order: nothing, or the whole pattern of a repository. */
async function encodeFiles(
  files: readonly InfillFile[],
  { repository }: Infill,
  room: number,
  context: PromptContext,
): Promise<number[]> {
  if (files.length === 0) return [];
  const encode = async (text: string) => Array.from(await encodeText(text, 'end', context));
  const head = repository === null ? [] : [repository.name, ...(await encode(`${REPOSITORY}\n`))];
  const tail = repository === null ? [] : [repository.file, ...(await encode(`${CURRENT_FILE}\n`))];
  let left = room - head.length - tail.length;
  const kept: number[][] = [];
  for (const { name, text } of files.toReversed()) {
    const lines = text.endsWith('\n') ? text : `${text}\n`;
    const tokens =
      repository === null ? await encode(lines) : [repository.file, ...(await encode(`${name}\n${lines}`))];
    left -= tokens.length;
    if (left < 0) break;
    kept.unshift(tokens);
  }
  return kept.length === 0 ? [] : [...head, ...kept.flat(), ...tail];
}
