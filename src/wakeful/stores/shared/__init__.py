"""Tables that no fire touches: written once, for SQLite and PostgreSQL. The hot path is in `sqlite` and `postgres`.

The SQL here is what both databases understand, with named parameters, and in addition:

- `IN :names` is a set of keys: `json_each` in SQLite, an array in PostgreSQL.
- `INDEXED BY` is for SQLite, whose planner guesses; PostgreSQL is restricted to index scans (`postgres.connection`).
- `FOR UPDATE` and `FOR SHARE`, with or without `SKIP LOCKED`, are for writes in PostgreSQL. In SQLite there is one
  writer, so reading a row is locking it. A read transaction locks nothing.
- `instr` is called `strpos` in PostgreSQL.

`sqlite.database` and `postgres.database` translate and run it. Where the databases need different SQL, it is a
`PerDatabase`.
"""
