-- Requests with a key that are being answered: by which node, and until when nobody else may take them over.

CREATE TABLE askings (
  key   text COLLATE "C" PRIMARY KEY,
  asker text COLLATE "C" NOT NULL,
  until bigint NOT NULL
) WITH (fillfactor = 50);
