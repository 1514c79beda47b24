import type { CompletionRequest } from '../../shared/completion.ts';
import { ApiError } from '../../shared/errors.ts';
import { unsupportedParameter } from './request-errors.ts';

/**
 * A completion has no slot for tool calls, so the one use of tools is a strict function that is forced: the text is then
 * its arguments. No tools, and a choice that calls none, mean nothing.
 * @throws ApiError 400 for every other use
 */
export function forcedFunction<T>(
  request: CompletionRequest,
  constrain: (field: string, schema: unknown) => T,
): T | null {
  const tools = request.tools ?? [];
  const choice = request.tool_choice ?? 'auto';
  if (tools.length === 0) {
    if (typeof choice === 'string' && choice !== 'required') return null;
    const message = "Missing required parameter: 'tools', which 'tool_choice' asks for.";
    throw new ApiError('missing_required_parameter', message, { param: 'tools' });
  }
  const name = typeof choice === 'object' ? choice.function.name : null;
  const index = tools.findIndex((tool) => tool.function.name === name);
  if (name !== null && index === -1) {
    const message = `Invalid 'tool_choice': no function '${name.slice(0, 64)}' among 'tools'.`;
    throw new ApiError('invalid_value', message, { param: 'tool_choice' });
  }
  const forced = tools[index]?.function;
  if (forced?.strict)
    return constrain(`tools[${index}].function.parameters`, forced.parameters ?? { type: 'object' });
  const only = "only with a strict function that 'tool_choice' forces; the text is then its arguments";
  throw unsupportedParameter('tools', `is available ${only}`);
}
