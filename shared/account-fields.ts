import * as z from 'zod';
import { toSnakeCase } from './field-names.ts';
import { always, characters, queryInteger } from './json-fields.ts';
import { limits } from './tenant.ts';

/** Fields and lists of the admin API and of a tenant's account. */

export const identifier = z
  .string()
  .regex(
    /^[a-z0-9][a-z0-9-]{0,62}$/,
    'expected at most 63 lower-case letters, digits and hyphens, such as acme-2',
  );
export const displayName = characters(200, z.string().trim().min(1)).describe('Name for people.');

export const limitShape = toSnakeCase(limits.shape);

export const limitFields = z.strictObject(limitShape).partial();

/** Unix seconds. */
export const seconds = z.int();
export const warning = z.string().optional().describe('What the limits of cost that were set do not limit.');
export const createdAt = seconds.describe('Time of the creation in Unix seconds.');

export const pageSize = (most: number, usual: number) =>
  queryInteger(1, most).default(usual).describe('Maximum number of items on a page.');
export const pageQuery = z.strictObject({
  limit: pageSize(1_000, 100),
  after: z.string().default('').describe('Last id of the previous page.'),
});

export const listOf = <T extends z.ZodType>(item: T) =>
  z.object({
    object: always('list'),
    data: z.array(item).describe('The items of this page.'),
    has_more: z.boolean().describe('Whether there is a next page; its `after` is the last id of this one.'),
  });
