import { createWorker } from './worker.ts';

export default createWorker();

export { BatchRun } from './batches/objects/batch-run.ts';
export { IdempotentAnswer } from './replay/objects/idempotent-answer.ts';
export { StreamTail } from './replay/objects/stream-tail.ts';
export { TenantLimiter } from './tenant-limiter.ts';
