/**
 * Limits of a long-lived thread's JavaScript heap. V8 lets the young generation grow to 100 MiB of garbage
 * per thread and keeps it; the engine thread and the tokenizer threads have 10 to 25 MiB of live objects
 * each.
 */
export const THREAD_MEMORY = { maxYoungGenerationSizeMb: 24 };
