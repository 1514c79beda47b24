/**
 * Repeats a call until its result is accepted, or until the test's timeout. What takes longer is asked for
 * more rarely, so that waits of half a minute do not cost as much as other tests.
 */
export async function eventually<T>(ask: () => Promise<T>, wanted: (answer: T) => boolean): Promise<T> {
  const start = performance.now();
  for (;;) {
    const answer = await ask();
    if (wanted(answer)) return answer;
    const pauseMs = Math.min(500, Math.max(50, (performance.now() - start) / 10));
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
}
