-- Networks from which the key may be used, as a JSON list; NULL = all.
ALTER TABLE keys ADD COLUMN allowed_addresses TEXT;
