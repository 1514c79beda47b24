-- The tables exist if the ledger is still in the database of the keys.
CREATE TABLE IF NOT EXISTS usage_daily (
  tenant_id TEXT NOT NULL,
  day TEXT NOT NULL,
  model TEXT NOT NULL,
  key_id TEXT NOT NULL,
  requests INTEGER NOT NULL,
  completed INTEGER NOT NULL,
  failed INTEGER NOT NULL,
  cancelled INTEGER NOT NULL,
  abandoned INTEGER NOT NULL,
  finish_stop INTEGER NOT NULL,
  finish_length INTEGER NOT NULL,
  prompt_tokens INTEGER NOT NULL,
  cached_tokens INTEGER NOT NULL,
  completion_tokens INTEGER NOT NULL,
  latency_ms INTEGER NOT NULL,
  first_token_ms INTEGER NOT NULL,
  first_tokens INTEGER NOT NULL,
  PRIMARY KEY (tenant_id, day, model, key_id)
) WITHOUT ROWID;

-- Sequence number up to which a tenant's records are in usage_daily. Changes in the same transaction.
CREATE TABLE IF NOT EXISTS usage_cursors (
  tenant_id TEXT PRIMARY KEY,
  sequence INTEGER NOT NULL
) WITHOUT ROWID;

-- Queries without a tenant, and retention.
CREATE INDEX IF NOT EXISTS usage_by_day ON usage_daily (day);
