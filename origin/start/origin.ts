import { endWithLauncher } from './with-launcher.ts';

/** The origin as the launcher starts it. */

endWithLauncher();
await import('../main.ts');
