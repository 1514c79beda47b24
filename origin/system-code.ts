/** The system's name for what went wrong, such as ENOENT; undefined when it was not the system that failed. */
export const systemCode = (thrown: unknown): string | undefined =>
  thrown instanceof Error && 'code' in thrown && typeof thrown.code === 'string' ? thrown.code : undefined;
