import { DurableObject } from 'cloudflare:workers';
import { type Batch, type BatchFault, ENDED } from '@continuo/shared/batch.ts';
import { bugTrace } from '@continuo/shared/error-details.ts';
import type { BatchOrder, BatchRunRpc } from '../../env/batch-protocol.ts';
import type { Env } from '../../env/env.ts';
import { parseSettings } from '../../env/settings.ts';
import { newId, objectKey } from '../../files/file-store.ts';
import { putRecord } from '../batch-record.ts';
import { InputRefusal, readInput } from '../input-file.ts';
import { type Ending, faultRecord, UNFINISHED } from '../line-record.ts';
import { BatchLines } from './batch-lines.ts';
import { putResults } from './result-files.ts';
import { RunningLines, randomHex } from './running-lines.ts';

/** `start` waits this long for the end of the validation. */
const START_WAIT_MS = 2_000;
/** The alarm rings again after this time at most, so that the platform keeps the object running. */
const HEARTBEAT_MS = 10_000;
const FAULT_PAUSE_MS = 5_000;
/** Records that one transaction writes. */
const STEP = 1_000;

/** How a batch ends, and the ids of its files. */
interface Result {
  readonly ending: Ending;
  readonly output: string;
  readonly error: string;
}

interface Progress extends BatchOrder {
  /** Absent until the batch ends. */
  readonly result?: Result;
}

/**
 * One batch, from its validation to its result files. The database holds all progress: the alarm continues
 * after a restart at any moment. Lines that were running then run again. Deletes everything at the end, when
 * R2 has files and record.
 */
export class BatchRun extends DurableObject<Env> implements BatchRunRpc {
  readonly #lines: BatchLines;
  readonly #running: RunningLines;
  #progress: Progress | null;
  #working: Promise<void> | null = null;
  #news = Promise.withResolvers<void>();

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    this.#lines = new BatchLines(ctx.storage.sql);
    this.#running = new RunningLines({
      lines: this.#lines,
      exports: ctx.exports,
      order: () => this.#progress,
      onEnd: () => this.#notify(),
      onError: (thrown) => this.#report(thrown),
    });
    const stored = this.#lines.load();
    this.#progress = stored === null ? null : (JSON.parse(stored) as Progress);
  }

  async start(order: BatchOrder): Promise<Batch | null> {
    if (this.#progress === null) {
      this.#save(order);
      await this.ctx.storage.setAlarm(Date.now());
    }
    const until = Date.now() + START_WAIT_MS;
    let shown = await this.show();
    while (shown?.status === 'validating' && Date.now() < until) {
      await Promise.race([this.#news.promise, scheduler.wait(until - Date.now())]);
      shown = await this.show();
    }
    return shown;
  }

  async show(): Promise<Batch | null> {
    return this.#progress === null ? null : this.#shown(this.#progress);
  }

  #shown({ batch }: Progress): Batch {
    if (batch.in_progress_at === null) return batch;
    const { waiting, output, error } = this.#lines.counts();
    const request_counts = { total: waiting + output + error, completed: output, failed: error };
    return { ...batch, request_counts };
  }

  async cancel(): Promise<Batch | null> {
    const status = this.#progress?.batch.status;
    if (status === 'validating' || status === 'in_progress') {
      this.#update({ status: 'cancelling', cancelling_at: unixSeconds() });
    }
    return this.show();
  }

  async erase(): Promise<void> {
    this.#progress = null;
    await this.ctx.storage.deleteAll();
    this.#notify();
  }

  override async alarm(): Promise<void> {
    await Promise.race([this.#work(), scheduler.wait(HEARTBEAT_MS)]);
    if (this.#progress !== null) await this.ctx.storage.setAlarm(Date.now());
  }

  /** Works until the batch has ended. Only one call at a time has an effect. */
  #work(): Promise<void> {
    this.#working ??= this.#proceed()
      .catch(async (thrown: unknown) => {
        this.#report(thrown);
        await scheduler.wait(FAULT_PAUSE_MS);
      })
      .finally(() => {
        this.#working = null;
      });
    this.ctx.waitUntil(this.#working);
    return this.#working;
  }

  #report(thrown: unknown): void {
    const batch = this.#progress?.batch.id;
    console.error(JSON.stringify({ event: 'batch_failed', batch, ...bugTrace(thrown) }));
  }

  async #proceed(): Promise<void> {
    if (this.#progress === null) return;
    if (this.#status() === 'validating') await this.#validate();
    if (this.#status() === 'in_progress') await this.#run();
    const status = this.#status();
    if (status === null) return;
    if (ENDED.includes(status)) await this.#leave();
    else await this.#finish();
  }

  /** Null once the batch is erased. */
  #status(): Batch['status'] | null {
    return this.#progress?.batch.status ?? null;
  }

  get #batch(): Batch {
    return this.#progress!.batch;
  }

  #save(progress: Progress): void {
    this.#lines.save(JSON.stringify(progress));
    this.#progress = progress;
    this.#notify();
  }

  #update(change: Partial<Batch>): void {
    this.#save({ ...this.#progress!, batch: { ...this.#batch, ...change } });
  }

  /** Wakes everything that waits for a change. */
  #notify(): void {
    this.#news.resolve();
    this.#news = Promise.withResolvers<void>();
  }

  /** Reads the input file from its beginning, so that it can be repeated. */
  async #validate(): Promise<void> {
    const { tenantId, batch } = this.#progress!;
    this.#lines.clear();
    // Written before all that follows: no later record of the batch can be overwritten by this one.
    await putRecord(this.env, this.#progress!);
    const isOver = () => this.#status() !== 'validating';
    try {
      const object = await this.env.FILES.get(objectKey(tenantId, 'files', batch.input_file_id));
      await readInput(object, batch.endpoint, parseSettings(this.env).MAX_BODY_BYTES, isOver, {
        lineOf: (id) => this.#lines.lineOf(id),
        add: (number, { customId, request, beginning }) => {
          if (typeof request === 'string') this.#lines.addRequest(number, customId!, beginning, request);
          else
            this.#lines.addFault(number, customId, faultRecord({ number, customId }, request, randomHex(16)));
        },
      });
    } catch (thrown) {
      if (!(thrown instanceof InputRefusal)) throw thrown;
      if (!isOver()) this.#refuse(thrown.fault);
      return;
    }
    if (!isOver()) this.#update({ status: 'in_progress', in_progress_at: unixSeconds() });
  }

  #refuse(fault: BatchFault): void {
    this.#lines.clear();
    const errors = { object: 'list' as const, data: [fault] };
    this.#update({ status: 'failed', failed_at: unixSeconds(), errors });
  }

  /** Sends waiting lines until none is left, the batch is cancelled, or its time is over. */
  async #run(): Promise<void> {
    while (this.#progress !== null) {
      const now = Date.now();
      const isOver = this.#status() !== 'in_progress' || now >= this.#batch.expires_at! * 1_000;
      if (!isOver) this.#running.send(now);
      if (this.#running.count === 0 && (isOver || this.#lines.counts().waiting === 0)) return;
      const pause = this.#running.pauseMs(now);
      await Promise.race([this.#news.promise, scheduler.wait(pause > 0 ? pause : HEARTBEAT_MS)]);
    }
  }

  /** Writes the result files and the record to R2. Each step can be repeated. */
  async #finish(): Promise<void> {
    const { ending, output, error } = this.#progress!.result ?? this.#decideEnding();
    for (let some = this.#lines.waiting(STEP); some.length > 0; some = this.#lines.waiting(STEP)) {
      for (const { number, custom_id: customId } of some) {
        this.#lines.finish(
          number,
          'error',
          faultRecord({ number, customId }, UNFINISHED[ending], randomHex(16)),
        );
      }
      await this.ctx.storage.sync();
    }
    const { request_counts: counts } = this.#shown(this.#progress!);
    await putResults(this.env, this.#progress!, 'output', output, this.#lines);
    await putResults(this.env, this.#progress!, 'error', error, this.#lines);
    this.#update({
      status: ending,
      [`${ending}_at`]: unixSeconds(),
      request_counts: counts,
      output_file_id: counts.completed > 0 ? output : null,
      error_file_id: counts.failed > 0 ? error : null,
    });
    await this.#leave();
  }

  /** Decides once how the batch ends, and the ids of its files. */
  #decideEnding(): Result {
    const { status, in_progress_at: startedAt } = this.#batch;
    const isCancelled = status === 'cancelling';
    // Only a part of the file has been read.
    if (startedAt === null) this.#lines.clear();
    const result: Result = {
      ending: isCancelled ? 'cancelled' : this.#lines.counts().waiting > 0 ? 'expired' : 'completed',
      output: newId('file-', Date.now(), randomHex),
      error: newId('file-', Date.now(), randomHex),
    };
    const finalizing = { status: 'finalizing', finalizing_at: unixSeconds() } as const;
    this.#save({
      ...this.#progress!,
      batch: { ...this.#batch, ...(!isCancelled && finalizing) },
      result,
    });
    return result;
  }

  /** Deletes the object's data once R2 has the record of the batch. */
  async #leave(): Promise<void> {
    await putRecord(this.env, this.#progress!);
    this.#progress = null;
    await this.ctx.storage.deleteAlarm();
    await this.ctx.storage.deleteAll();
    this.#notify();
  }
}

const unixSeconds = (): number => Math.floor(Date.now() / 1_000);
