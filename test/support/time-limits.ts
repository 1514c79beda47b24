/** Ends tests that hang. On two quiet cores a test needs at most a third of it. */
export const TEST_LIMIT_MS = 60_000;

/** Conditions end before their test, so that the report says what was waited for. */
export const WAIT_LIMIT_MS = TEST_LIMIT_MS - 5_000;

/** Files whose tests may take longer, and why. */
export const LONGER_MS: Readonly<Record<string, number>> = {};
