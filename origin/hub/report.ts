import Table from 'cli-table3';
import { byteSize } from './byte-size.ts';
import type { CachedModel } from './cache.ts';
import type { CheckReport } from './check.ts';

/** What the commands print. */

const plain = { style: { head: [], border: [] } };

export function modelTable(models: readonly CachedModel[]): string {
  if (models.length === 0) return 'No model in the cache.';
  const table = new Table({ ...plain, head: ['model', 'revision', 'variants', 'size', 'directory'] });
  for (const { repository, commit, revisions, variants, bytes, directory } of models) {
    const names = variants.map(({ name }) => name).join('\n');
    table.push([
      repository,
      [...revisions, commit.slice(0, 7)].join('\n'),
      names,
      byteSize(bytes),
      directory,
    ]);
  }
  return table.toString();
}

const perSecond = (rate: number): string => `${rate < 100 ? rate.toPrecision(2) : Math.round(rate)} tokens/s`;

export function checkReport({
  summary,
  warning,
  bytes,
  promptTokens,
  text,
  speed,
  rows,
}: CheckReport): string {
  const { prefill, decode, batch } = speed;
  const same = rows.identical
    ? `identical, alone and among ${rows.rows}: the same answer in any company`
    : `differ by up to ${rows.largestDifference.toPrecision(2)} alone and among ${rows.rows}: answers may depend on company`;
  const table = new Table({ ...plain, colWidths: [null, 80], wordWrap: true });
  table.push(
    { model: summary },
    ...(warning === null ? [] : [{ warning }]),
    { files: byteSize(bytes) },
    { answer: JSON.stringify(text) },
    { prompt: `${promptTokens} tokens` },
    { prefill: perSecond(prefill) },
    { decode: `${perSecond(decode)} alone, ${perSecond(batch)} with ${rows.rows} rows` },
    { 'bits of a row': same },
  );
  return table.toString();
}
