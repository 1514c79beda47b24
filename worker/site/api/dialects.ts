/** As in shared/tenant.ts, which would load zod. */
export const dialectNames = ['openai', 'fireworks', 'llamacpp', 'mistralrs', 'vllm'] as const;
