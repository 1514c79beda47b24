import http from 'node:http';
import { availableParallelism, homedir } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { CommanderError } from 'commander';
import { messageOf } from '../../shared/message-of.ts';
import { createProgram } from './commands.ts';
import { readHubSettings } from './hub-settings.ts';
import { createProgress } from './progress.ts';

/** `npm run model`: exit code 1 and one line on stderr when something fails. */

try {
  // HTTPS_PROXY, HTTP_PROXY and NO_PROXY, as other tools take them; Node has it since 24.14.
  http.setGlobalProxyFromEnv?.();
  const program = createProgram({
    settings: readHubSettings(process.env, homedir()),
    fetch,
    progress: createProgress(process.stderr),
    print: (text) => console.log(text),
    printError: (text) => console.error(text),
    sleep,
    random: Math.random,
    now: () => performance.now(),
    threads: availableParallelism(),
    freeMemory: () => process.availableMemory(),
  });
  await program.parseAsync();
} catch (thrown) {
  const shown = thrown instanceof CommanderError; // commander has said what is wrong
  if (!shown) console.error(`continuo model: ${messageOf(thrown)}`);
  process.exitCode = shown ? thrown.exitCode : 1;
}
