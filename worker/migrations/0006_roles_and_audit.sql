-- What an admin key may do; NULL for all other keys.
ALTER TABLE keys ADD COLUMN role TEXT;
UPDATE keys SET role = 'owner' WHERE scopes = '["admin"]';

-- One row per change of a plan, tenant or key, written in the transaction of the change.
CREATE TABLE audit (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  at INTEGER NOT NULL,
  actor TEXT NOT NULL,
  actor_tenant TEXT NOT NULL,
  address TEXT,
  request_id TEXT NOT NULL,
  action TEXT NOT NULL,
  target TEXT NOT NULL,
  tenant_id TEXT,
  changes TEXT
);
CREATE INDEX audit_by_tenant ON audit (tenant_id, id);
CREATE INDEX audit_by_actor ON audit (actor, id);

-- Rows are only added. Erasing a tenant clears what a row says of it, and nothing else can be changed.
CREATE TRIGGER audit_keeps_rows BEFORE DELETE ON audit
BEGIN
  SELECT RAISE(ABORT, 'audit is append-only');
END;
CREATE TRIGGER audit_keeps_values BEFORE UPDATE ON audit
WHEN NEW.changes IS NOT NULL OR NEW.address IS NOT NULL
  OR (NEW.id, NEW.at, NEW.actor, NEW.actor_tenant, NEW.request_id, NEW.action, NEW.target, NEW.tenant_id)
    IS NOT (OLD.id, OLD.at, OLD.actor, OLD.actor_tenant, OLD.request_id, OLD.action, OLD.target, OLD.tenant_id)
BEGIN
  SELECT RAISE(ABORT, 'audit is append-only');
END;
