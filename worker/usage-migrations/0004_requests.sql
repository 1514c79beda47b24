-- One row per ended request, for some days; usage_daily keeps the sums. Several requests may have the same id.
CREATE TABLE requests (
  tenant_id TEXT NOT NULL,
  request_id TEXT NOT NULL,
  sequence INTEGER NOT NULL,
  started_at INTEGER NOT NULL,
  -- The usage record as JSON.
  record TEXT NOT NULL,
  PRIMARY KEY (tenant_id, request_id, sequence)
) WITHOUT ROWID;

CREATE INDEX requests_by_time ON requests (started_at);

-- The last day on which a key was used.
CREATE INDEX usage_by_key ON usage_daily (key_id, day);
