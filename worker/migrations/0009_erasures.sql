-- Recent erasures, which are repeated for some days: another place may have accepted a cached key.
CREATE INDEX audit_erasures ON audit (at) WHERE action = 'eraseTenant';
