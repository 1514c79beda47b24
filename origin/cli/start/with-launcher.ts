/**
 * Sends SIGTERM to this process when its launcher is gone. The launcher holds the other end of stdin and
 * writes nothing.
 */
export function endWithLauncher({ stdin, pid }: NodeJS.Process = process): void {
  stdin.once('close', () => process.kill(pid, 'SIGTERM'));
  stdin.resume();
  // Must not keep the process alive.
  stdin.unref();
}
