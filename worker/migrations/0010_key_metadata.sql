-- Pairs of the tenant, as a JSON object; NULL = none.
ALTER TABLE keys ADD COLUMN metadata TEXT;
