import { type DestinationStream, type Logger, pino } from 'pino';

/**
 * Structured lines on stdout. What is logged is named field by field where it is logged: never a request body, a
 * prompt, a completion or a secret.
 */
export const createLog = (level: string, destination?: DestinationStream): Logger => {
  const options = {
    level,
    base: null,
    formatters: { level: (label: string) => ({ level: label }) },
    timestamp: () => `,"time":"${new Date().toISOString()}"`,
  };
  return destination ? pino(options, destination) : pino(options);
};

export type { Logger };
