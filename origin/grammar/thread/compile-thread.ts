import { constants, setPriority } from 'node:os';

/**
 * Entry of the compile thread. It runs where nothing else wants to: on Linux a priority belongs to the thread that sets
 * it; elsewhere it would be the whole process's. The compiler is loaded after that, for loading is work, too.
 */
if (process.platform === 'linux') setPriority(0, constants.priority.PRIORITY_LOW);
await import('./compile-jobs.ts');
