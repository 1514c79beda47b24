-- Pairs of the tenant, as a JSON object; NULL = none.
ALTER TABLE keys ADD COLUMN metadata TEXT;

-- Whether completions wait at the end of tokens_per_minute. Tenants of version 0.2.0 do, and keep it.
ALTER TABLE tenants ADD COLUMN wait_for_tokens INTEGER NOT NULL DEFAULT 1;

-- The sums of all tenants by UTC day and model. Each tenant's object writes its own rows.
CREATE TABLE usage_summary (
  tenant_id TEXT NOT NULL,
  day TEXT NOT NULL,
  model TEXT NOT NULL,
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
  -- In micro-units of the currency.
  cost_micros INTEGER NOT NULL,
  latency_ms INTEGER NOT NULL,
  first_token_ms INTEGER NOT NULL,
  first_tokens INTEGER NOT NULL,
  PRIMARY KEY (day, tenant_id, model)
) WITHOUT ROWID;

-- Number of the last report of each tenant: an older one that arrives late changes nothing.
CREATE TABLE usage_reports (
  tenant_id TEXT PRIMARY KEY,
  number INTEGER NOT NULL
) WITHOUT ROWID;

-- The upstreams, instead of the variable UPSTREAMS: each as JSON, as in the variable.
CREATE TABLE upstreams (
  name TEXT PRIMARY KEY,
  config TEXT NOT NULL,
  -- Unix milliseconds; NULL = it gets requests. A removed one is still asked what its requests have used.
  removed_at INTEGER
) WITHOUT ROWID;

-- A plan is removed only if no tenant has it.
CREATE INDEX tenants_by_plan ON tenants (plan_id) WHERE plan_id IS NOT NULL;
