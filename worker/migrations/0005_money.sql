-- Prices of models. They are only added: records name the version that they were billed with.
CREATE TABLE prices (
  version INTEGER PRIMARY KEY AUTOINCREMENT,
  model TEXT NOT NULL,
  -- Unix milliseconds.
  valid_from INTEGER NOT NULL,
  -- Micro-units of the currency per million tokens.
  prompt INTEGER NOT NULL,
  cached_prompt INTEGER NOT NULL,
  completion INTEGER NOT NULL,
  -- Thousandths.
  flex_factor INTEGER NOT NULL,
  batch_factor INTEGER NOT NULL
);
CREATE INDEX prices_by_model ON prices (model, valid_from);

-- Entries of prepaid balances. They are only added.
CREATE TABLE credits (
  sequence INTEGER PRIMARY KEY AUTOINCREMENT,
  tenant_id TEXT NOT NULL REFERENCES tenants (id),
  -- Chosen by the caller. An entry that is sent twice counts once.
  id TEXT NOT NULL,
  micros INTEGER NOT NULL,
  note TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  UNIQUE (tenant_id, id)
);
CREATE INDEX credits_by_tenant ON credits (tenant_id, sequence);

-- Sum of the tenant's entries; NULL = no prepaid balance.
ALTER TABLE tenants ADD COLUMN credit_micros INTEGER;
-- Receives signed events about the tenant's limits.
ALTER TABLE tenants ADD COLUMN webhook_url TEXT;
