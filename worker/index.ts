import { createWorker } from './worker.ts';

export default createWorker();

export { TenantLimiter } from './limits/objects/tenant-limiter.ts';
export { IdempotentAnswer } from './replay/objects/idempotent-answer.ts';
export { StreamTail } from './replay/objects/stream-tail.ts';
