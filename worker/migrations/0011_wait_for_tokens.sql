-- Whether completions wait at the end of tokens_per_minute. Tenants of version 0.2.0 do, and keep it.
ALTER TABLE tenants ADD COLUMN wait_for_tokens INTEGER NOT NULL DEFAULT 1;
