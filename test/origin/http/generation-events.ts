import { generationEvent } from '../../../shared/generation.ts';

/** The events of an answer, read to its end. */
export const eventsOf = async (response: Response) =>
  (await response.text())
    .trimEnd()
    .split('\n')
    // Slow streams have signs of life in between.
    .filter((line) => line !== '')
    .map((line) => generationEvent.parse(JSON.parse(line)));
