import { prefill } from '../../origin/hub/greedy.ts';
import { decodeRows, opened, promptOf, type Setting } from './experiments.ts';

/** A process that computes a prompt of 33 tokens and two rows: node one-run.ts '{"provider":"cuda","directory":"…"}'. */

const setting: Pick<Setting, 'provider' | 'directory'> = JSON.parse(process.argv[2] ?? '{}');
await opened(setting, { slots: 2, prefillChunk: 33 }, async (runner) => {
  await prefill(runner, 0, promptOf(33, runner));
  await decodeRows(runner, 2, 8);
});
