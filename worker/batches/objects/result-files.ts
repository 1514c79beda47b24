import type { BatchOrder } from '../../env/batch-protocol.ts';
import type { Env } from '../../env/env.ts';
import { fileOptions, objectKey } from '../../files/file-store.ts';
import type { BatchLines, ResultFile } from './batch-lines.ts';

/** Writes a result file to R2 as a stream; none without records. The same id can be written again. */
export async function putResults(
  { FILES }: Env,
  { tenantId, batch }: BatchOrder,
  file: ResultFile,
  id: string,
  lines: BatchLines,
): Promise<void> {
  const size = lines.size(file);
  if (size === 0) return;
  const { readable, writable } = new FixedLengthStream(size);
  const filename = `${batch.id}_${file}.jsonl`;
  const options = fileOptions({ filename, purpose: 'batch_output' }, Date.now());
  const stored = FILES.put(objectKey(tenantId, 'files', id), readable, options);
  await Promise.all([stored, writeAll(lines.contentOf(file), writable)]);
}

async function writeAll(pieces: Iterable<Uint8Array>, to: WritableStream<Uint8Array>): Promise<void> {
  const writer = to.getWriter();
  for (const piece of pieces) await writer.write(piece);
  await writer.close();
}
