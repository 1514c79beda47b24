/**
 * Ends this process as SIGTERM does once its launcher has gone, however it went: the launcher holds the other end of its
 * input, and says nothing there.
 */
export function endWithLauncher({ stdin, pid }: NodeJS.Process = process): void {
  stdin.once('close', () => process.kill(pid, 'SIGTERM'));
  stdin.resume();
  // Waiting for that keeps nobody alive.
  stdin.unref();
}
