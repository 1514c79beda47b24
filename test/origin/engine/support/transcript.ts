import type { EngineEvent, Submission } from '../../../../origin/engine/messages.ts';
import { promptEvent } from '../../../../origin/request/prompt-event.ts';
import type { TokenBytes } from '../../../../origin/tokenizer/token-bytes.ts';
import type { EventOf, GenerationEvent, TokenLogprob } from '../../../../shared/generation.ts';

export interface ChoiceTranscript {
  text: string;
  tokens: TokenLogprob[];
  ids: number[];
  completionTokens: number;
  finish: EventOf<'finish'> | null;
}

/** The output of a request without what may vary: times, cached tokens and the merging of events. */
export interface Transcript {
  readonly prompts: Map<number, EventOf<'prompt'>>;
  readonly choices: Map<number, ChoiceTranscript>;
  end: { readonly promptTokens: number; readonly completionTokens: number } | string | null;
}

/** Completes what the engine sends of prompts, as the preparation of a request does. */
export function wireEvents(
  events: readonly EngineEvent[],
  submission: Submission,
  tokenBytes: TokenBytes,
): GenerationEvent[] {
  return events.map((event) =>
    event.type === 'prompt'
      ? promptEvent(event, submission.prompts[event.prompt]!, submission, tokenBytes)
      : event,
  );
}

/** @throws Error if the order of the events breaks the protocol */
export function transcribe(events: readonly GenerationEvent[], choicesPerPrompt: number): Transcript {
  const transcript: Transcript = { prompts: new Map(), choices: new Map(), end: null };
  const started = new Set<number>();
  const expect = (holds: boolean, rule: string): void => {
    if (!holds) throw new Error(`protocol: ${rule}`);
  };
  for (const event of events) {
    expect(transcript.end === null, `${event.type} after the end`);
    switch (event.type) {
      case 'started':
        expect(!started.has(event.prompt), 'a prompt starts twice');
        started.add(event.prompt);
        break;
      case 'prompt':
        expect(started.has(event.prompt), 'a prompt is shown before it starts');
        expect(!transcript.prompts.has(event.prompt), 'a prompt is shown twice');
        transcript.prompts.set(event.prompt, event);
        break;
      case 'token': {
        const known = choice(transcript, event.choice);
        expect(started.has(Math.floor(event.choice / choicesPerPrompt)), 'a token before its prompt starts');
        expect(known.finish === null, 'a token after the finish');
        expect(event.completionTokens >= known.completionTokens, 'completion tokens decrease');
        known.text += event.text;
        known.tokens.push(...(event.logprobs ?? []));
        known.ids.push(...(event.ids ?? []));
        known.completionTokens = event.completionTokens;
        break;
      }
      case 'finish': {
        const known = choice(transcript, event.choice);
        expect(known.finish === null, 'a choice finishes twice');
        known.finish = event;
        known.completionTokens = event.completionTokens;
        break;
      }
      case 'done': {
        const { promptTokens, completionTokens } = event.usage;
        transcript.end = { promptTokens, completionTokens };
        break;
      }
      case 'error':
        transcript.end = event.code;
        break;
      case 'accepted':
        expect(false, 'the engine does not send accepted');
    }
  }
  return transcript;
}

function choice(transcript: Transcript, index: number): ChoiceTranscript {
  let known = transcript.choices.get(index);
  if (known === undefined) {
    known = { text: '', tokens: [], ids: [], completionTokens: 0, finish: null };
    transcript.choices.set(index, known);
  }
  return known;
}

/** Returns the transcript with its parts in a fixed order, for comparison. */
export function ordered(transcript: Transcript): unknown {
  const sort = <T>(map: Map<number, T>) => [...map].sort(([a], [b]) => a - b);
  return { prompts: sort(transcript.prompts), choices: sort(transcript.choices), end: transcript.end };
}
