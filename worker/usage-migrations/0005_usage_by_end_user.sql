-- The sums of the requests that name an end user. `end_user` is a hash.
CREATE TABLE usage_users (
  tenant_id TEXT NOT NULL,
  day TEXT NOT NULL,
  model TEXT NOT NULL,
  key_id TEXT NOT NULL,
  end_user TEXT NOT NULL,
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
  cost_micros INTEGER NOT NULL,
  latency_ms INTEGER NOT NULL,
  first_token_ms INTEGER NOT NULL,
  first_tokens INTEGER NOT NULL,
  PRIMARY KEY (tenant_id, day, model, key_id, end_user)
) WITHOUT ROWID;

-- Queries without a tenant, and retention.
CREATE INDEX usage_users_by_day ON usage_users (day);
