import { type Load, runLoad } from './load.ts';
import { openPath, type Way } from './path.ts';

/**
 * Separate process for the clients of one path. The process that bundles and starts workerd has a large heap,
 * whose garbage collection would add to every latency.
 */

const path = await openPath(JSON.parse(process.argv[2] ?? '') as Way);
process.on('message', async (load: Load) => process.send?.(await runLoad(path, load)));
process.once('disconnect', () => path.close());
process.send?.('ready');
