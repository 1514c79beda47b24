#!/usr/bin/env node
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** The bin of the package. It is JavaScript, so that a Node without TypeScript can start the installed Node instead. */

const main = new URL('./main.ts', import.meta.url);
const installed = fileURLToPath(new URL('../../node_modules/.bin/node', import.meta.url));

if (process.features.typescript) {
  await import(main.href);
} else if (existsSync(installed)) {
  const child = spawn(installed, [fileURLToPath(main), ...process.argv.slice(2)], { stdio: 'inherit' });
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
  child.on('exit', (code, signal) => {
    if (signal === null) process.exitCode = code ?? 1;
    else {
      process.removeAllListeners(signal);
      process.kill(process.pid, signal);
    }
  });
} else {
  console.error(`continuo: Node ${process.versions.node} is too old; install Node 22.18 or later.`);
  process.exitCode = 1;
}
