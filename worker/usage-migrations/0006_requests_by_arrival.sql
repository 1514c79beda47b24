-- Random ids as the key of the table cost most of the time of an insertion. Ids in the order of arrival need no index by time.
CREATE TABLE arrived_requests (
  id INTEGER PRIMARY KEY,
  tenant_id TEXT NOT NULL,
  request_id TEXT NOT NULL,
  sequence INTEGER NOT NULL,
  started_at INTEGER NOT NULL,
  -- The usage record as JSON.
  record TEXT NOT NULL,
  UNIQUE (tenant_id, request_id, sequence)
);

INSERT INTO arrived_requests (tenant_id, request_id, sequence, started_at, record)
SELECT tenant_id, request_id, sequence, started_at, record FROM requests ORDER BY started_at;

DROP TABLE requests;
ALTER TABLE arrived_requests RENAME TO requests;
