import { BatchRun as Run } from '../../../../worker/batches/objects/batch-run.ts';
import type { Env } from '../../../../worker/env/env.ts';

/** A bucket that takes long for the first record of a batch. */
const slow = (bucket: R2Bucket): R2Bucket =>
  new Proxy(bucket, {
    get:
      (_, name: 'put') =>
      async (...values: Parameters<R2Bucket['put']>) => {
        if (name === 'put' && String(values[1]).includes('"validating"')) await scheduler.wait(700);
        return bucket[name](...values);
      },
  });

/** A batch whose first record takes long to be written. */
export class BatchRun extends Run {
  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, { ...env, FILES: slow(env.FILES) });
  }
}

export { default, IdempotentAnswer, StreamTail, TenantLimiter } from '../../../../worker/index.ts';
