import { randomInt } from 'node:crypto';
import { fuzzHeaders } from './safetensors.ts';

/** `npm run fuzz:weights -- [cases] [seed]`: damaged and lying headers of weight files. Prints its seed. */

const count = Number(process.argv[2] ?? 100_000);
const seed = Number(process.argv[3] ?? randomInt(2 ** 31));
if (!(Number.isSafeInteger(count) && Number.isSafeInteger(seed))) {
  throw new Error('Usage: npm run fuzz:weights -- [number of cases] [seed]');
}
console.log(`${count} cases, seed ${seed}`);
const { violations, accepted, refused } = await fuzzHeaders(count, seed);
console.log(`${accepted} accepted, ${refused} refused, ${violations.length} violations`);
for (const violation of violations.slice(0, 20)) console.log(violation);
process.exitCode = violations.length === 0 ? 0 : 1;
