import { accountMark, withoutTags } from '../../shared/answer/account-mark.ts';
import { errorOfEvent, failedEnd } from '../../shared/answer/error-answer.ts';
import { StreamWriter } from '../../shared/answer/stream-writer.ts';
import { ndjsonLine, SSE_KEEP_ALIVE } from '../../shared/framing.ts';
import type {
  GenerationEvent,
  GenerationRequest,
  UsageAccount,
  WrittenForm,
} from '../../shared/generation.ts';

/** How the events of one generation are written. */
export interface Notation {
  readonly contentType: string;
  /** Text of events that are written together; '' when there is nothing to be seen. */
  text(events: readonly GenerationEvent[]): string;
  /** What says that the generation goes on; '' where the reader has been shown something since the last call. */
  sign(): string;
}

/** For readers that look at every event. */
export const NDJSON: Notation = {
  contentType: 'application/x-ndjson',
  text: (events) => events.map(ndjsonLine).join(''),
  sign: () => '\n',
};

/** Milliseconds of a stream that nobody bills when its origin and its connection die together. */
const MARK_EVERY_MS = 250;

/** What a written stream is made from. */
export interface Writing {
  readonly request: GenerationRequest;
  readonly form: WrittenForm;
  /** Has counted whatever is being written. */
  readonly account: () => UsageAccount;
  /** Milliseconds. */
  readonly now: () => number;
}

/** As the caller reads it, and for those between an account at the start, before the end, and now and then. */
export function written({ request, form, account, now }: Writing): Notation {
  const { prompts, choices } = request;
  const writer = new StreamWriter({ ...form, prompts: prompts.length, choices }, () => account().usage);
  let marked = Number.NEGATIVE_INFINITY;
  let shown = false;
  const mark = (): string => {
    marked = now();
    return accountMark(account());
  };
  return {
    contentType: 'text/event-stream; charset=utf-8',
    text(events) {
      const last = events.at(-1);
      const failed = last?.type === 'error' ? failedEnd(errorOfEvent(last), form.errorCode) : '';
      const text = withoutTags(writer.write(events) + failed);
      shown ||= text !== '';
      const due = failed !== '' || last?.type === 'done' || now() - marked >= MARK_EVERY_MS;
      // Whoever has read the end has been accounted for.
      return due ? mark() + text : text;
    },
    sign() {
      const due = !shown;
      shown = due;
      return due ? mark() + SSE_KEEP_ALIVE : '';
    },
  };
}
