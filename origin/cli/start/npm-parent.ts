const POLL_MS = 500;

/**
 * Resolves when the process that started this one is gone, if that was npm. A signal to npm alone ends the shell between
 * the two, and this process would run on. Without npm, it never resolves: a process may outlive the shell that started it.
 */
export async function untilNpmIsGone({ env, ppid: parent }: NodeJS.Process = process): Promise<void> {
  await new Promise<void>((resolve) => {
    if (env.npm_lifecycle_event === undefined) return;
    const timer = setInterval(() => {
      if (process.ppid === parent) return;
      clearInterval(timer);
      resolve();
    }, POLL_MS).unref();
  });
}
