-- The upstreams, instead of the variable UPSTREAMS: each as JSON, as in the variable.
CREATE TABLE upstreams (
  name TEXT PRIMARY KEY,
  config TEXT NOT NULL,
  -- Unix milliseconds; NULL = it gets requests. A removed one is still asked what its requests have used.
  removed_at INTEGER
) WITHOUT ROWID;
