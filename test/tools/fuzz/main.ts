import { randomInt } from 'node:crypto';
import { fuzz } from './fuzz.ts';
import { startTinySystem } from './system.ts';

/**
 * `npm run fuzz -- [requests] [seed]`: random and mutated requests against the whole product. Prints the seed
 * first.
 */

const count = Number(process.argv[2] ?? 5_000);
const seed = Number(process.argv[3] ?? randomInt(2 ** 31));
if (!(Number.isSafeInteger(count) && Number.isSafeInteger(seed))) {
  throw new Error('Usage: npm run fuzz -- [number of requests] [seed]');
}
console.log(`${count} requests, seed ${seed}`);

const system = await startTinySystem();
const started = performance.now();
try {
  const report = await fuzz(system, {
    count,
    seed,
    onProgress: (sent) => {
      if (sent % 2_000 === 0)
        console.log(`${sent} requests, ${Math.round((performance.now() - started) / 1000)} s`);
    },
  });
  console.log('answers by status:', report.statuses);
  console.log(
    `${report.violations.length} violations in ${Math.round((performance.now() - started) / 1000)} s`,
  );
  for (const violation of report.violations.slice(0, 50)) console.log(violation);
  process.exitCode = report.violations.length === 0 ? 0 : 1;
} finally {
  await system.stop();
}
