-- Names of the tenant for models, as a JSON object.
ALTER TABLE tenants ADD COLUMN aliases TEXT NOT NULL DEFAULT '{}';
