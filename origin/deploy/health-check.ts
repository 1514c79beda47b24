import { variables } from '../config/config.ts';

/** The container's health check: exits with 0 while the origin accepts requests. */

const port = variables.shape.CONTINUO_ORIGIN_PORT.parse(process.env.CONTINUO_ORIGIN_PORT || undefined);

try {
  const response = await fetch(`http://127.0.0.1:${port}/health`, { signal: AbortSignal.timeout(4000) });
  await response.body?.cancel();
  process.exitCode = response.ok ? 0 : 1;
} catch {
  process.exitCode = 1;
}
