import koffi from 'koffi';
import { prefill } from '../../origin/hub/greedy.ts';
import { type Changes, decodeRows, opened, promptOf, type Setting } from './experiments.ts';

/** A process that computes a prompt of 33 tokens and two rows: node one-run.ts '{"provider":"cuda","directory":"…"}'. */

interface Choices extends Pick<Setting, 'provider' | 'directory'> {
  readonly stackBytes?: number;
  readonly changes?: Changes;
}

const { stackBytes, changes = {}, ...setting }: Choices = JSON.parse(process.argv[2] ?? '{}');
if (stackBytes !== undefined) {
  koffi.config({ sync_stack_size: stackBytes, async_stack_size: stackBytes });
  // ort-library.ts would raise it to 8 MiB.
  const { config } = koffi;
  Object.assign(koffi, { config: () => ({ ...config(), sync_stack_size: Infinity }) });
}
await opened(setting, { slots: 2, prefillChunk: 33, changes }, async (runner) => {
  await prefill(runner, 0, promptOf(33, runner));
  await decodeRows(runner, 2, 8);
});
