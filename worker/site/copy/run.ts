import type { Connection } from '../api/client.ts';
import { type StreamUpdate, streamCompletion, streamedBody } from '../api/completion-stream.ts';

/** A request as it was sent, and what it gave. */
export interface Run {
  /** Names the run in the text that it generated. */
  readonly key: string;
  /** Unix milliseconds. */
  readonly at: number;
  /** Of the response; null = none came. */
  readonly id: string | null;
  readonly requestId: string | null;
  /** The same fingerprint and seed give the same text. */
  readonly fingerprint: string | null;
  /** Null = the tenant's own. */
  readonly dialect: string | null;
  readonly body: Readonly<Record<string, unknown>>;
  /** The text of each choice as the response has it. */
  readonly texts: readonly string[];
  /** False if it was stopped or failed. */
  readonly isWhole: boolean;
}

/** Collects what a run gives. */
export class RunRecorder {
  #run: Run;

  constructor(run: Pick<Run, 'key' | 'at' | 'dialect' | 'body'>) {
    const body = streamedBody(run.body);
    this.#run = { ...run, body, id: null, requestId: null, fingerprint: null, texts: [], isWhole: false };
  }

  add(update: StreamUpdate): void {
    const run = this.#run;
    if (update.type === 'start') this.#run = { ...run, requestId: update.requestId };
    if (update.type === 'identity') this.#run = { ...run, id: update.id, fingerprint: update.fingerprint };
    if (update.type !== 'choice') return;
    const texts = [...run.texts];
    texts[update.index] = (texts[update.index] ?? '') + update.text;
    this.#run = { ...run, texts };
  }

  /** @param isWhole whether the stream came to its end */
  end(isWhole: boolean): Run {
    return { ...this.#run, texts: Array.from(this.#run.texts, (text) => text ?? ''), isWhole };
  }
}

/** Sends the request of a run again. @throws RequestFailure; the signal's reason if it is aborted */
export async function repeatRun(connection: Connection, run: Run, signal: AbortSignal): Promise<Run> {
  const recorder = new RunRecorder({ ...run, at: Date.now() });
  const updates = streamCompletion({ ...connection, dialect: run.dialect }, run.body, signal);
  for await (const update of updates) recorder.add(update);
  return recorder.end(true);
}

/** Returns the index of the first code point that differs; null if one text begins with the other. */
function firstDifference(a: string, b: string): number | null {
  const [first, second] = [Array.from(a), Array.from(b)];
  const at = first.findIndex((point, index) => index < second.length && point !== second[index]);
  return at < 0 ? null : at;
}

/** Says whether a repeated run gave the same text. */
export function verdictOf(run: Run, again: Run): string {
  const changed =
    run.fingerprint !== again.fingerprint
      ? ` The model or its settings have changed: the fingerprint was ${run.fingerprint}, and is ${again.fingerprint}.`
      : '';
  const count = Math.max(run.texts.length, again.texts.length);
  for (let index = 0; index < count; index += 1) {
    const [before, now] = [run.texts[index] ?? '', again.texts[index] ?? ''];
    if (before === now || (!run.isWhole && now.startsWith(before))) continue;
    const at = firstDifference(before, now) ?? Math.min(Array.from(before).length, Array.from(now).length);
    const choice = count > 1 ? ` of choice ${index + 1}` : '';
    return `The text differs from character ${at + 1}${choice}.${changed}`;
  }
  if (run.isWhole) return `The text is equal.${changed}`;
  return `The run had no end. The repeated text begins with what it gave.${changed}`;
}
