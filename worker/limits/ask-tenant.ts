import type { TenantAnswers, TenantQuestion } from '../env/limiter-protocol.ts';
import { callHome } from './limiter-client.ts';

/** Asks a tenant's object. @throws what the call throws */
export async function askTenant<Kind extends TenantQuestion['kind']>(
  context: Parameters<typeof callHome>[0],
  tenantId: string,
  question: Extract<TenantQuestion, { readonly kind: Kind }>,
): Promise<TenantAnswers[Kind]> {
  const answer: unknown = await callHome<unknown>(context, tenantId, (home) => home.ask(question));
  // The kind of the question decides, which the types of remote calls cannot say.
  return answer as TenantAnswers[Kind];
}
