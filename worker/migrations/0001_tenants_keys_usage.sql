CREATE TABLE plans (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  limits TEXT NOT NULL,
  weight REAL NOT NULL,
  created_at INTEGER NOT NULL
);

CREATE TABLE tenants (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  -- Limits and weight come from the plan, unless the tenant has its own.
  plan_id TEXT REFERENCES plans (id),
  limits TEXT,
  weight REAL,
  dialect TEXT NOT NULL,
  suspended INTEGER NOT NULL DEFAULT 0,
  created_at INTEGER NOT NULL
);

CREATE TABLE keys (
  -- The public part of the key.
  id TEXT PRIMARY KEY,
  tenant_id TEXT NOT NULL REFERENCES tenants (id),
  name TEXT NOT NULL,
  -- Hex SHA-256 of the whole key. The key itself is not stored.
  hash TEXT NOT NULL,
  scopes TEXT NOT NULL,
  models TEXT,
  limits TEXT NOT NULL,
  expires_at INTEGER,
  revoked_at INTEGER,
  created_at INTEGER NOT NULL,
  -- Id of the key that replaces this one.
  replaced_by TEXT
);

CREATE INDEX keys_by_tenant ON keys (tenant_id, created_at);

CREATE TABLE usage_daily (
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
CREATE TABLE usage_cursors (
  tenant_id TEXT PRIMARY KEY,
  sequence INTEGER NOT NULL
) WITHOUT ROWID;

-- The tenant of all admin keys.
INSERT INTO tenants (id, name, plan_id, limits, weight, dialect, created_at)
VALUES ('operator', 'Operator', NULL, NULL, NULL, 'openai', 0);
