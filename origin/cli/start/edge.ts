import { errorMessage } from '@continuo/shared/error-details.ts';
import * as z from 'zod';
import { openLocalWorker } from './local-worker.ts';
import { pageLink } from './page-key.ts';
import { endWithLauncher } from './with-launcher.ts';

/** Entry of the local Worker's process. The launcher passes its settings as environment variables. */

endWithLauncher();

const schema = z.object({
  CONTINUO_HOST: z.string(),
  CONTINUO_PORT: z.coerce.number(),
  CONTINUO_WORKER_STATE: z.string(),
  /** As JSON. */
  CONTINUO_ORIGINS: z.string(),
  /** Variables and secrets as JSON: a command line is visible to every user of the machine. */
  CONTINUO_WORKER_VARS: z.string(),
  /** As JSON. */
  CONTINUO_PAGE_LINK: z.string().optional(),
});
const vars = z.record(z.string(), z.string());
const origins = z.array(z.object({ name: z.string(), url: z.url() }));

// V8 collects old objects for the first time when this is full. By default, workerd takes 240 MiB more for
// their garbage.
process.env.MINIFLARE_WORKERD_V8_FLAGS ??= '--initial-old-space-size=4';

const settings = schema.parse(process.env);
const { miniflare } = await openLocalWorker({
  host: settings.CONTINUO_HOST,
  port: settings.CONTINUO_PORT,
  vars: vars.parse(JSON.parse(settings.CONTINUO_WORKER_VARS)),
  ...(settings.CONTINUO_PAGE_LINK && { pageLink: pageLink.parse(JSON.parse(settings.CONTINUO_PAGE_LINK)) }),
  state: settings.CONTINUO_WORKER_STATE,
  origins: origins.parse(JSON.parse(settings.CONTINUO_ORIGINS)),
}).catch((error: unknown) => {
  // The launcher shows the last lines.
  console.error(errorMessage(error));
  process.exit(1);
});

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => void miniflare.dispose());
}
