import { ApiError } from '@continuo/shared/errors.ts';

/** Errors 400 of several fields. parse-request.ts has the errors that the schemas find. */

export const missingParameter = (param: string): ApiError =>
  new ApiError('missing_required_parameter', `Missing required parameter: '${param}'.`, { param });

/** @param why the rest of a sentence that starts with the field's name */
export const unsupportedParameter = (param: string, why: string): ApiError =>
  new ApiError('unsupported_parameter', `Unsupported parameter: '${param}' ${why}.`, { param });

export function aboveMaximum(param: string, maximum: number, value: number): ApiError {
  const message = `Invalid '${param}': integer above maximum value. Expected a value <= ${maximum}, but got ${value} instead.`;
  return new ApiError('integer_above_max_value', message, { param });
}

/** A limit of the tenant or the API key, which the caller cannot find in the API's documentation. */
export function aboveAccountMaximum(param: string, maximum: number, value: number): ApiError {
  const message = `Invalid '${param}': integer above maximum value. Your account allows at most ${maximum}, but got ${value} instead.`;
  return new ApiError('integer_above_max_value', message, { param });
}

/** Two aliases have different values. */
export function conflicting(first: string, second: string): ApiError {
  const message = `Conflicting parameters: '${first}' and '${second}' mean the same but have different values. Send one of them.`;
  return new ApiError('conflicting_parameters', message, { param: first });
}
