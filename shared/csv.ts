/** Returns rows as CSV (RFC 4180) below one line of names. */
export function csvText(names: readonly string[], rows: readonly object[]): string {
  const lines = rows.map((row) => {
    const values = row as Readonly<Record<string, unknown>>;
    return names.map((name) => field(values[name])).join(',');
  });
  return [names.join(','), ...lines].map((line) => `${line}\r\n`).join('');
}

/** Spreadsheets run what begins like a formula, and texts are the callers' or a model's. */
function field(value: unknown): string {
  const text = String(value ?? '');
  const safe = typeof value === 'string' && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
