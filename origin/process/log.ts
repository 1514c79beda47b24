import { type DestinationStream, type Logger, pino } from 'pino';

/**
 * Writes JSON lines to stdout. Callers name each logged field; request bodies, prompts, completions and
 * secrets are never logged.
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
