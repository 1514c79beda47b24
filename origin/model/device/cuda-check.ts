import { missingCudaLibraries } from './cuda-libraries.ts';
import { thisMachine } from './device-choice.ts';

/** Last part of `npm run cuda:install`: prints what the CUDA provider still needs. Exit code 1 if anything is missing. */

const missing = missingCudaLibraries(thisMachine().cuda);
for (const line of missing) console.error(`still missing: ${line}`);
if (missing.length === 0) console.log('CUDA can be used: CONTINUO_PROVIDER=cuda');
else process.exitCode = 1;
