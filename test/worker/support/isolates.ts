import { createWorker } from '../../../worker/worker.ts';

const isolates = new Map<string, ReturnType<typeof createWorker>>();

/** Returns the isolate that the header `x-isolate` of a request selects: Workers that share no memory. */
export function isolateOf({ headers }: Request): ReturnType<typeof createWorker> {
  const name = headers.get('x-isolate') ?? '';
  const known = isolates.get(name) ?? createWorker();
  isolates.set(name, known);
  return known;
}
