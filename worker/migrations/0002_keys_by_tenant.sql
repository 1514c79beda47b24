-- Lists the keys of one tenant in pages, in the order of their ids.
DROP INDEX keys_by_tenant;
CREATE INDEX keys_by_tenant ON keys (tenant_id, id);
