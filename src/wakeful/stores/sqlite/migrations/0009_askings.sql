-- Requests with a key that are being answered: by which process, and until when nobody else may take them over.

CREATE TABLE askings (
  key   TEXT PRIMARY KEY,
  asker TEXT NOT NULL,
  until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
