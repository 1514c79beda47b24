import { toCamelCase } from '@continuo/shared/field-names.ts';
import { type AuditEntry, runAudited } from '../tenants/audit-log.ts';
import type { Row } from '../tenants/row.ts';

/** A price of a model. Prices are never changed: a new one replaces the old one from its time on. */
export interface ModelPrice {
  /** Increases with every price. */
  readonly version: number;
  readonly model: string;
  /** Unix milliseconds. */
  readonly validFrom: number;
  /** Micro-units of the currency per million tokens. */
  readonly prompt: number;
  readonly cachedPrompt: number;
  readonly completion: number;
  /** Factors of the service tiers, in thousandths. */
  readonly flexFactor: number;
  readonly batchFactor: number;
}

/** Lists prices after a version, of one model, or of all if `model` is null. */
export async function listPrices(
  db: D1Database,
  model: string | null,
  after: number,
  limit: number,
): Promise<ModelPrice[]> {
  const condition = model === null ? '' : 'AND model = ?3';
  const values = model === null ? [after, limit] : [after, limit, model];
  const { results } = await db
    .prepare(`SELECT * FROM prices WHERE version > ?1 ${condition} ORDER BY version LIMIT ?2`)
    .bind(...values)
    .all<Row<ModelPrice>>();
  return results.map(toCamelCase);
}

/**
 * Reads the prices that are valid at a time, and those that become valid later; by default from the primary.
 */
export async function readPrices(
  db: D1Database,
  now: number,
  session: D1SessionConstraint = 'first-primary',
): Promise<ModelPrice[]> {
  const { results } = await db
    .withSession(session)
    .prepare(`
      SELECT * FROM prices AS price WHERE valid_from > ?1 OR version =
        (SELECT version FROM prices WHERE model = price.model AND valid_from <= ?1
          ORDER BY valid_from DESC, version DESC LIMIT 1)`)
    .bind(now)
    .all<Row<ModelPrice>>();
  return results.map(toCamelCase);
}

export async function insertPrice(
  db: D1Database,
  price: Omit<ModelPrice, 'version'>,
  entry: AuditEntry,
): Promise<ModelPrice> {
  const insert = db
    .prepare(`
      INSERT INTO prices (model, valid_from, prompt, cached_prompt, completion, flex_factor, batch_factor)
      VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING *`)
    .bind(
      ...[price.model, price.validFrom, price.prompt, price.cachedPrompt, price.completion],
      ...[price.flexFactor, price.batchFactor],
    );
  const [inserted] = await runAudited<Row<ModelPrice>>(db, [insert], entry);
  return toCamelCase(inserted!.results[0]!);
}
