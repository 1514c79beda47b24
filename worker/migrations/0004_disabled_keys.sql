-- A disabled key is rejected until it is enabled again.
ALTER TABLE keys ADD COLUMN disabled INTEGER NOT NULL DEFAULT 0;
