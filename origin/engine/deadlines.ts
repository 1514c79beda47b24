import type { OpenRequest } from './open-request.ts';

/** Finds the requests whose time is over, looking at all of them only when the earliest deadline has passed. */
export class Deadlines {
  #earliest = Number.POSITIVE_INFINITY;

  add({ deadline }: OpenRequest): void {
    this.#earliest = Math.min(this.#earliest, deadline);
  }

  /** @param open all open requests */
  passed(open: Iterable<OpenRequest>, now: number): readonly OpenRequest[] {
    if (now < this.#earliest) return [];
    const expired: OpenRequest[] = [];
    this.#earliest = Number.POSITIVE_INFINITY;
    for (const request of open) {
      if (request.deadline <= now) expired.push(request);
      else this.add(request);
    }
    return expired;
  }
}
