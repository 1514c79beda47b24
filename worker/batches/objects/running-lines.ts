import { toHex } from '@continuo/shared/signing.ts';
import type { BatchOrder } from '../../env/batch-protocol.ts';
import { faultRecord, responseRecord } from '../line-record.ts';
import { sendLine } from '../send-line.ts';
import { SendWindow } from '../send-window.ts';
import type { BatchLines, WaitingLine } from './batch-lines.ts';

/**
 * Bytes of the requests that run at the same time and of their responses; those of a single one may be
 * larger.
 */
const MAX_RUNNING_BYTES = 16 * 1024 * 1024;
/** Attempts of a line that the service fails. Refusals for lack of room do not count. */
const MAX_ATTEMPTS = 6;

export const randomHex = (bytes: number): string => toHex(crypto.getRandomValues(new Uint8Array(bytes)));

interface RunningLinesOptions {
  readonly lines: BatchLines;
  /** The Worker's exports. */
  readonly exports: unknown;
  /** The batch; null once it is erased. */
  readonly order: () => BatchOrder | null;
  /** Called when a line has ended, or may be sent again. */
  readonly onEnd: () => void;
  readonly onError: (thrown: unknown) => void;
}

/** Sends the lines of a batch, as many at a time as the origin has room for, and keeps their records. */
export class RunningLines {
  readonly #options: RunningLinesOptions;
  readonly #window = new SendWindow();
  /** Bytes of the requests that run, by line. */
  readonly #bytes = new Map<number, number>();
  /** Bytes of the largest response so far. Each line that runs may get one like it. */
  #largestResponse = 0;

  constructor(options: RunningLinesOptions) {
    this.#options = options;
  }

  get count(): number {
    return this.#bytes.size;
  }

  /** Milliseconds until lines may be sent again. */
  pauseMs(now: number): number {
    return this.#window.pauseMs(now);
  }

  /** Sends as many waiting lines as there is room for. */
  send(now: number): void {
    const { lines, onEnd, onError } = this.#options;
    let bytes = this.count * this.#largestResponse;
    for (const size of this.#bytes.values()) bytes += size;
    while (this.count < this.#window.size(now) && bytes < MAX_RUNNING_BYTES) {
      const line = lines.next(this.#bytes);
      if (line === null) return;
      bytes += line.body.length + this.#largestResponse;
      this.#bytes.set(line.number, line.body.length);
      void this.#send(line)
        .catch(onError)
        .finally(() => {
          this.#bytes.delete(line.number);
          onEnd();
        });
    }
  }

  /** Runs a line once, and keeps its record if it got a final response. */
  async #send(line: WaitingLine): Promise<void> {
    const { lines, exports, order } = this.#options;
    const response = await sendLine(exports, order()!, line.body).catch(() => null);
    if (order() === null) return;
    this.#largestResponse = Math.max(this.#largestResponse, response?.body.length ?? 0);
    if (response?.mayRetry === false) {
      if (response.status < 500) this.#window.responded();
      const file = response.status === 200 ? 'output' : 'error';
      return lines.finish(line.number, file, responseRecord(line, response, randomHex(16)));
    }
    const hasNoRoom = response?.status === 429 || response?.status === 503;
    this.#window.refused(Date.now(), hasNoRoom ? response.retryAfterMs : null);
    if (hasNoRoom) return;
    lines.countAttempt(line.number);
    if (line.attempts + 1 < MAX_ATTEMPTS) return;
    const record = response
      ? responseRecord(line, response, randomHex(16))
      : faultRecord(line, { code: 'upstream_error', message: 'The answer broke off.' }, randomHex(16));
    lines.finish(line.number, 'error', record);
  }
}
