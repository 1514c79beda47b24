import { type Load, runLoad } from './load.ts';
import { openPath, type Way } from './path.ts';

/**
 * A process of its own for the clients of one way: in the process that bundles and starts workerd, the collection of its
 * large heap took part in every latency.
 */

const path = await openPath(JSON.parse(process.argv[2] ?? '') as Way);
process.on('message', async (load: Load) => process.send?.(await runLoad(path, load)));
process.once('disconnect', () => path.close());
process.send?.('ready');
