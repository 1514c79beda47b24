import { ApiError } from '../../shared/errors.ts';

/** The 400s that more than one field can bring; what the schemas find is worded in issues.ts. */

export const missingParameter = (param: string): ApiError =>
  new ApiError('missing_required_parameter', `Missing required parameter: '${param}'.`, { param });

/** @param why the rest of a sentence that begins with the field's name */
export const unsupportedParameter = (param: string, why: string): ApiError =>
  new ApiError('unsupported_parameter', `Unsupported parameter: '${param}' ${why}.`, { param });

export function aboveMaximum(param: string, maximum: number, value: number): ApiError {
  const message = `Invalid '${param}': integer above maximum value. Expected a value <= ${maximum}, but got ${value} instead.`;
  return new ApiError('integer_above_max_value', message, { param });
}

/** Two ways of saying one thing were both used, and differ. */
export function conflicting(first: string, second: string): ApiError {
  const message = `Conflicting parameters: '${first}' and '${second}' mean the same but have different values. Send one of them.`;
  return new ApiError('conflicting_parameters', message, { param: first });
}
