/** Answers with columns of rows as CSV (RFC 4180). */
export function csvResponse(names: readonly string[], rows: readonly object[]): Response {
  const lines = rows.map((row) => {
    const values = row as Readonly<Record<string, unknown>>;
    return names.map((name) => field(values[name])).join(',');
  });
  const text = [names.join(','), ...lines].map((line) => `${line}\r\n`).join('');
  return new Response(text, { headers: { 'content-type': 'text/csv; charset=utf-8' } });
}

/** Spreadsheets run what begins like a formula, and names of models and keys are the callers'. */
function field(value: unknown): string {
  const text = String(value ?? '');
  const safe = typeof value === 'string' && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
