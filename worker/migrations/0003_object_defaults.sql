-- Defaults of the request fields of these names.
ALTER TABLE tenants ADD COLUMN open_objects INTEGER NOT NULL DEFAULT 0;
ALTER TABLE tenants ADD COLUMN any_key_order INTEGER NOT NULL DEFAULT 0;
