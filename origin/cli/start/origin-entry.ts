import { endWithLauncher } from './with-launcher.ts';

/** Entry of the origin's process under the launcher. */

endWithLauncher();
await import('@continuo/origin/main.ts');
