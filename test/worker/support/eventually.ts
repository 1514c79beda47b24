/** Asks until the answer is as wanted; the test's own time limit ends it otherwise. */
export async function eventually<T>(ask: () => Promise<T>, wanted: (answer: T) => boolean): Promise<T> {
  for (;;) {
    const answer = await ask();
    if (wanted(answer)) return answer;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
