import { createWorker } from './worker.ts';

export default createWorker();

export { BatchRun } from './batches/objects/batch-run.ts';
export { TenantLimiter } from './limits/objects/tenant-limiter.ts';
export { IdempotentAnswer } from './replay/objects/idempotent-answer.ts';
export { StreamTail } from './replay/objects/stream-tail.ts';
