#!/usr/bin/env node
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/**
 * The bin of the package, and `npm start`. It is JavaScript, so that any Node can start the installed Node instead, or say
 * what is missing.
 */

const main = new URL('./main.ts', import.meta.url);
const packages = fileURLToPath(new URL('../../node_modules', import.meta.url));
const installed = `${packages}/.bin/node`;

// A checkout runs its TypeScript, in which Node 22 knows no `using`. The package is compiled.
const isCheckout = main.pathname.endsWith('.ts');
const [leastMajor, leastMinor] = isCheckout ? [24, 0] : [22, 18];
const [major, minor] = process.versions.node.split('.').map(Number);
const isRecent = major > leastMajor || (major === leastMajor && minor >= leastMinor);
const runsMain = isRecent && (!isCheckout || Boolean(process.features.typescript));

function fail(reason) {
  console.error(`continuo: ${reason}`);
  process.exitCode = 1;
}

if (isCheckout && !existsSync(packages)) {
  fail('The packages of this checkout are not installed; run npm ci first.');
} else if (runsMain) {
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
  fail(`Node ${process.versions.node} is too old; install Node ${leastMajor}.${leastMinor} or later.`);
}
