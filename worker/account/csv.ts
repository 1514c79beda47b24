import { csvText } from '@continuo/shared/csv.ts';

/** Answers with columns of rows as CSV. */
export const csvResponse = (names: readonly string[], rows: readonly object[]): Response =>
  new Response(csvText(names, rows), { headers: { 'content-type': 'text/csv; charset=utf-8' } });
