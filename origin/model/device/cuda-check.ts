import { missingCudaLibraries } from './cuda-libraries.ts';
import { thisMachine } from './device-choice.ts';

/** End of `npm run cuda:install`: says what else the CUDA provider needs; exit code 1 when that is anything. */

const missing = missingCudaLibraries(thisMachine().cuda);
for (const line of missing) console.error(`still missing: ${line}`);
if (missing.length === 0) console.log('CUDA can be used: CONTINUO_PROVIDER=cuda');
else process.exitCode = 1;
