import { openAsBlob } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { CommandError, withExamples } from '@continuo/origin/terminal/program.ts';
import { createBar } from '@continuo/origin/terminal/progress.ts';
import type { Terminal } from '@continuo/origin/terminal/terminal.ts';
import {
  type Batch,
  batchObject,
  ENDED,
  fileObject,
  uploadObject,
  uploadPart,
} from '@continuo/shared/batch.ts';
import type { Command } from 'commander';
import type { Api } from './api.ts';
import type { OpenSession, Session } from './session.ts';

/** `continuo batch`. */

const POLL_MS = 1_000;

const pathOf = (id: string, rest = ''): string => `/v1/batches/${encodeURIComponent(id)}${rest}`;

async function showBatch(api: Api, id: string): Promise<Batch> {
  return batchObject.parse(await api.request('GET', pathOf(id)));
}

/** Opens a file, which is read as it is sent. */
async function open(file: string): Promise<Blob> {
  try {
    return await openAsBlob(file);
  } catch {
    throw new CommandError(`The file ${file} cannot be read.`);
  }
}

/** Bytes of one request, below the limit of the platform. */
const PART_BYTES = 64 * 1024 * 1024;

/** Uploads a file, in parts if it is large. Returns its id. */
async function upload(api: Api, content: Blob, filename: string): Promise<string> {
  if (content.size <= PART_BYTES) {
    const form = new FormData();
    form.set('purpose', 'batch');
    form.set('file', content, filename);
    return fileObject.parse(await api.request('POST', '/v1/files', form)).id;
  }
  const asked = { filename, purpose: 'batch', bytes: content.size, mime_type: 'application/jsonl' };
  const { id } = uploadObject.parse(await api.request('POST', '/v1/uploads', asked));
  const part_ids: string[] = [];
  for (let from = 0; from < content.size; from += PART_BYTES) {
    const form = new FormData();
    form.set('data', content.slice(from, from + PART_BYTES));
    part_ids.push(uploadPart.parse(await api.request('POST', `/v1/uploads/${id}/parts`, form)).id);
  }
  return uploadObject.parse(await api.request('POST', `/v1/uploads/${id}/complete`, { part_ids })).file!.id;
}

async function start({ api }: Session, file: string, endpoint: string): Promise<Batch> {
  const id = await upload(api, await open(file), path.basename(file));
  const order = { input_file_id: id, endpoint, completion_window: '24h' };
  return batchObject.parse(await api.request('POST', '/v1/batches', order));
}

/** Waits for the end of a batch, with a bar on a terminal. */
async function untilEnded(api: Api, terminal: Terminal, id: string): Promise<Batch> {
  const format = `{status} [{bar}] {value} of {total}, {failed} failed`;
  const bar = terminal.showsProgress ? createBar({ format, stream: terminal.stderr }) : null;
  bar?.start(0, 0, { status: 'validating', failed: 0 });
  try {
    for (;;) {
      const batch = await showBatch(api, id);
      const { total, completed, failed } = batch.request_counts;
      bar?.setTotal(total);
      bar?.update(completed + failed, { status: batch.status, failed });
      if (ENDED.includes(batch.status)) return batch;
      await sleep(POLL_MS);
    }
  } finally {
    bar?.stop();
  }
}

/** Prints the results to stdout and the failed lines to stderr. @throws CommandError if lines failed */
async function printResults({ api, terminal }: Session, batch: Batch): Promise<void> {
  for (const [id, write] of [
    [batch.output_file_id, (text: string) => terminal.write(text)],
    [batch.error_file_id, (text: string) => void terminal.stderr.write(text)],
  ] as const) {
    if (id === null) continue;
    const response = await api.send('GET', `/v1/files/${id}/content`);
    for await (const text of response.body!.pipeThrough(new TextDecoderStream())) write(text);
  }
  const { failed, total } = batch.request_counts;
  if (batch.status === 'completed' && failed === 0) return;
  const fault = batch.errors?.data[0]?.message;
  throw new CommandError(
    fault ?? `The batch is ${batch.status}: ${failed} of ${total} lines have no result.`,
  );
}

export function addBatchCommands(program: Command, open: OpenSession): void {
  const batches = program.command('batch').description('run the requests of a file when there is room');
  const run = batches
    .command('run <file>')
    .description('upload a file, wait for its batch and print the results')
    .option('--endpoint <path>', '/v1/completions or /v1/score', '/v1/completions')
    .option('--no-wait', 'only start the batch and print its state');
  withExamples(run, 'continuo batch run input.jsonl > output.jsonl').action(
    async (file: string, { endpoint, wait }: { endpoint: string; wait: boolean }) => {
      const session = open();
      const batch = await start(session, file, endpoint);
      if (!wait) return session.results.object(batch);
      session.terminal.note(`Batch ${batch.id}`);
      await printResults(session, await untilEnded(session.api, session.terminal, batch.id));
    },
  );
  const status = batches.command('status <id>').description('show the state of a batch');
  withExamples(status, 'continuo batch status BATCH_ID').action((id: string) =>
    open().request('GET', pathOf(id)),
  );
  const get = batches.command('get <id>').description('wait for a batch and print the results');
  withExamples(get, 'continuo batch get BATCH_ID > output.jsonl').action(async (id: string) => {
    const session = open();
    await printResults(session, await untilEnded(session.api, session.terminal, id));
  });
  const cancel = batches.command('cancel <id>').description('cancel a batch');
  withExamples(cancel, 'continuo batch cancel BATCH_ID').action((id: string) =>
    open().request('POST', pathOf(id, '/cancel')),
  );
}
