export type JsonObject = Readonly<Record<string, unknown>>;

/** Whether a value parsed from JSON is an object: neither null nor a list. */
export const isJsonObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
