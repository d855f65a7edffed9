"""Prepared statements: each once per connection, only so many, and an error leaves nothing behind."""

import psycopg
import pytest

from wakeful.stores.postgres import statements
from wakeful.stores.postgres.address import parse
from wakeful.stores.postgres.connection import Session, Timeouts, connect


def _session(url: str) -> Session:
    return Session(connect(parse(url), Timeouts()), is_reading=False, on_time=lambda session: None)


KEPT = "SELECT count(*) FROM pg_prepared_statements WHERE name LIKE 'wakeful%'"


def test_values_come_back_as_they_were_sent(url: str) -> None:
    """Strings, numbers and nothing at all, each as the statement's own type; the same text is prepared once."""
    session = _session(url)
    try:
        query = "SELECT $1::text, $2::bigint, $3::text, $4::bigint"
        for text, number in (("ä 'b' \\", 1), ("", 2**62), ("$1", -1)):
            assert session.rows(query, text, number, None, None) == [(text, number, None, None)]
        assert session.rows("SELECT 1 WHERE false") == []
        assert session.rows(KEPT) == [(3,)]
    finally:
        session.close()


def test_only_so_many_statements_are_kept(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest makes room, and is prepared again when it is needed."""
    monkeypatch.setattr(statements, "STATEMENTS_KEPT", 3)
    session = _session(url)
    try:
        for _ in range(2):
            assert [session.rows(f"SELECT {n} + $1::bigint", 1) for n in range(5)] == [[(n + 1,)] for n in range(5)]
        assert session.rows(KEPT) == [(3,)]
    finally:
        session.close()


def test_a_statement_that_fails_is_noted_and_the_next_works(url: str) -> None:
    """One that cannot be prepared, and one that fails when it runs: both can be repeated."""
    session = _session(url)
    try:
        for _ in range(2):
            with pytest.raises(psycopg.errors.UndefinedTable):
                session.rows("SELECT 1 FROM no_such_table")
            with pytest.raises(psycopg.errors.DivisionByZero):
                session.rows("SELECT 1 / $1::bigint", 0)
            assert isinstance(session.failure, psycopg.errors.UndefinedTable)
            session.reset()
        assert session.rows("SELECT 1 / $1::bigint", 1) == [(1,)]
    finally:
        session.close()
