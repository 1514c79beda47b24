const running = Date.now;
let standing: number | null = null;
Date.now = () => standing ?? running();

/** Stops the clock of the Worker and of its Durable Objects at the header `x-now` (Unix ms), if any. */
export function turnClock({ headers }: Request): void {
  const now = headers.get('x-now');
  if (now !== null) standing = Number(now);
}
