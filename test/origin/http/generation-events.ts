import { generationEvent } from '../../../shared/generation.ts';

/** Reads an answer to its end and returns its events. */
export const eventsOf = async (response: Response) =>
  (await response.text())
    .trimEnd()
    .split('\n')
    // Slow streams contain heartbeats.
    .filter((line) => line !== '')
    .map((line) => generationEvent.parse(JSON.parse(line)));
