import type {
  EventOf,
  GenerationEvent,
  GenerationRequest,
  TokenLogprob,
  WirePrompt,
} from '../../../shared/generation.ts';
import type { FakeOrigin, Script } from './fake-origin.ts';

/** The output of the scripted model: the choice's number, then the same words for every choice. */
const WORDS = [' one', ' two', ' three', ' four', ' five', ' six', ' seven', ' eight'];

const textOf = (prompt: WirePrompt): string =>
  typeof prompt === 'string'
    ? prompt
    : prompt.map((part) => (typeof part === 'string' ? part : `<${part}>`)).join('');

const idsOf = (prompt: WirePrompt): number[] =>
  typeof prompt === 'string'
    ? Array.from(prompt, (unit) => unit.charCodeAt(0))
    : prompt.flatMap((part) => (typeof part === 'string' ? idsOf(part) : [part]));

/** A token with `topLogprobs` of the most likely tokens; the token itself is the first of them. */
export function token(id: number, text: string, logprob: number | null, topLogprobs: number): TokenLogprob {
  const bytes = Array.from(new TextEncoder().encode(text), (byte) => String.fromCharCode(byte)).join('');
  if (logprob === null) return { id, bytes, logprob, topLogprobs: null };
  const others = Array.from({ length: topLogprobs }, (_, rank): [number, string, number] =>
    rank === 0 ? [id, bytes, logprob] : [1_000 + rank, ` alt${rank}`, Math.fround(logprob - rank)],
  );
  return { id, bytes, logprob, topLogprobs: others };
}

/** Returns the event of the given token of the first choice. */
export const tokenEvent = (step: number, text = ` t${step}`): GenerationEvent => ({
  type: 'token',
  choice: 0,
  text,
  completionTokens: step,
});

export const logprobOf = (choice: number, step: number): number =>
  Math.fround(-0.1 * (step + 1) - 0.01 * choice);

/** Returns the tokens of each prompt, those of the context included. */
function tokenCounts({ prompts, context }: GenerationRequest): number[] {
  const before = context === undefined ? 0 : idsOf(context.prompt).length;
  return prompts.map((prompt) => before + idsOf(prompt).length);
}

export function acceptedFor(request: GenerationRequest, queueMs = 1): GenerationEvent[] {
  const promptTokens = tokenCounts(request);
  const accepted: EventOf<'accepted'> = { type: 'accepted', model: request.model, promptTokens };
  return [
    accepted,
    ...request.prompts.map((_, prompt) => ({ type: 'started', prompt, cachedTokens: 0, queueMs }) as const),
  ];
}

export function promptEvents(request: GenerationRequest): GenerationEvent[] {
  if (!request.echo) return [];
  return request.prompts.map((prompt, index): EventOf<'prompt'> => {
    const ids = idsOf(prompt);
    const topLogprobs = request.promptTopLogprobs;
    const plain = { type: 'prompt', prompt: index, text: textOf(prompt), ids } as const;
    if (topLogprobs === null) return plain;
    const texts = typeof prompt === 'string' ? Array.from(prompt) : ids.map((id) => `<${id}>`);
    const tokens = texts.map((text, step) =>
      token(ids[step] ?? 0, text, step === 0 && !request.context ? null : -1.5, topLogprobs),
    );
    return { ...plain, logprobs: tokens };
  });
}

export const finishOf = (
  choice: number,
  reason: EventOf<'finish'>['reason'],
  completionTokens: number,
): EventOf<'finish'> => ({ type: 'finish', choice, reason, stopReason: null, completionTokens });

/** Returns the `done` event of a request with so many completion tokens. */
export const doneFor = (request: GenerationRequest, completionTokens: number): EventOf<'done'> => ({
  type: 'done',
  usage: {
    promptTokens: tokenCounts(request).reduce((sum, count) => sum + count, 0),
    cachedTokens: 0,
    completionTokens,
  },
  timings: { queueMs: 1, promptMs: 2, generationMs: 4 },
});

/** Returns the token count of a choice and its finish reason. */
function lengthOf({ maxTokens }: GenerationRequest): { count: number; reason: 'stop' | 'length' } {
  if (maxTokens !== 'end' && maxTokens <= WORDS.length) return { count: maxTokens, reason: 'length' };
  return { count: WORDS.length, reason: 'stop' };
}

function stepEvents(request: GenerationRequest, step: number, sequences: number): GenerationEvent[] {
  return Array.from({ length: sequences }, (_, choice): GenerationEvent => {
    const text = step === 0 ? ` ${choice}` : (WORDS[step] ?? '');
    const id = 200 + step;
    return {
      type: 'token',
      choice,
      text,
      completionTokens: step + 1,
      ...(request.topLogprobs === null
        ? {}
        : { logprobs: [token(id, text, logprobOf(choice, step), request.topLogprobs)] }),
      ...(request.tokenIds ? { ids: [id] } : {}),
    };
  });
}

/** Returns all events of a request: one list per step. */
export function stepsFor(request: GenerationRequest): GenerationEvent[][] {
  const sequences = request.prompts.length * request.choices;
  const { count, reason } = lengthOf(request);
  const steps = Array.from({ length: count }, (_, step) => stepEvents(request, step, sequences));
  const finishes = Array.from({ length: sequences }, (_, choice): GenerationEvent => {
    const score = Array.from({ length: count }, (_, step) => logprobOf(choice, step)).reduce(
      (a, b) => a + b,
      0,
    );
    const finish = finishOf(choice, reason, count);
    return request.scores ? { ...finish, score } : finish;
  });
  const done = doneFor(request, sequences * count);
  return [[...acceptedFor(request), ...promptEvents(request)], ...steps, finishes, [done]];
}

/** Sends all events without delay. */
export const defaultScript: Script = (request, wire) => {
  for (const events of stepsFor(request)) wire.send(...events);
  wire.end();
};

/** Makes the origin begin each request with `begin`, and then wait until the Worker has disconnected. */
export function holdRequests(origin: FakeOrigin, begin: Script = () => {}) {
  const begun = Promise.withResolvers<void>();
  const left = Promise.withResolvers<void>();
  origin.script = async (request, wire) => {
    await begin(request, wire);
    begun.resolve();
    await wire.closed;
    left.resolve();
  };
  return { begun: begun.promise, left: left.promise };
}
