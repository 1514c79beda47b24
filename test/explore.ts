import { spawnSync } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { fileURLToPath } from 'node:url';

/**
 * Runs all tests with a random seed for property tests and random workloads.
 * Usage: npm run test:explore -- [SEED] [vitest arguments]
 */

const VITEST = fileURLToPath(new URL('../node_modules/vitest/vitest.mjs', import.meta.url));

const given = process.argv.slice(2);
const seed = /^-?\d+$/.test(given[0] ?? '') ? given.shift()! : String(randomInt(2 ** 31));
console.log(`Seed ${seed}. To repeat this run: npm run test:explore -- ${[seed, ...given].join(' ')}`);

const env = { ...process.env, TEST_SEED: seed };
const { status } = spawnSync(process.execPath, [VITEST, 'run', ...given], { stdio: 'inherit', env });
process.exitCode = status ?? 1;
