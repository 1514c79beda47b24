/**
 * Most token events a second for each core of the machine. One costs up to half a millisecond on its way through the
 * origin, the Worker and a client: this many take less than a tenth of the cores, where all of them share a machine.
 */
const EVENTS_PER_SECOND_AND_CORE = 150;

/** However crowded it is, a stream speaks ten times a second. */
const LONGEST_INTERVAL_MS = 100;

/** Milliseconds between the token events of one choice that `running` choices can afford together. */
export function affordableIntervalMs(running: number, cores: number): number {
  return Math.min(LONGEST_INTERVAL_MS, (running * 1000) / (EVENTS_PER_SECOND_AND_CORE * cores));
}
