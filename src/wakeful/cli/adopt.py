"""Use a database as a store of its own, or start with a new one."""

from __future__ import annotations

import secrets
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final

import click

from wakeful.cli.backup import damage_of, mark_as_copy
from wakeful.cli.caller import only_people
from wakeful.cli.errors import Ended
from wakeful.cli.home import database_of
from wakeful.cli.invocation import Invocation, command
from wakeful.cli.render import json_out, say
from wakeful.cli.restore import LOOK, identify, put_aside
from wakeful.server.daemon.home import holder_of

# The names under which a store keeps what must differ between two stores: its id, and the keys that it signs with.
KEYS: Final = ("receipt_secret", "calendar_key")

HAS_LOGINS: Final = "SELECT 1 FROM sqlite_schema WHERE name = 'logins'"  # since 0.2
SET: Final = "INSERT OR REPLACE INTO meta (name, value) VALUES (?, ?)"
FORGET: Final = "DELETE FROM meta WHERE name = ?"


@command("adopt")
@click.argument("file", metavar="[FILE]", required=False, type=click.Path(path_type=Path, dir_okay=False))
@click.option("--new", "is_new", is_flag=True, help="Start with a new, empty store; what is there is kept.")
def adopt_command(invocation: Invocation, file: Path | None, is_new: bool) -> None:
    """Use the database there as a store of its own. The daemon must be stopped.

    For a copied home folder, a database that was moved here, or one that lost its log. It gets a new identity and new
    keys: links, run tokens, the calendar's address and the home's token stop working. Runs that were open are unknown,
    and nothing that may have been done elsewhere is repeated. FILE is a database outside the home folder.
    """
    holder = holder_of(invocation.home)
    if holder is not None:
        raise Ended(f"{holder.in_words()} holds {invocation.home}", hint="stop it first: wakeful down")
    only_people(invocation.home, "choose the store")
    database = database_of(invocation.home) if file is None else file.absolute()
    _refuse_in_use(database)
    kept = None
    try:
        if is_new:
            kept = _start_new(database)
        else:
            _adopt(database)
    except OSError as error:
        raise Ended(f"{database} cannot be changed: {error.strerror}") from error
    if file is None:
        _forget_token(invocation.home)
    if invocation.is_json:
        json_out({"database": str(database), "new": is_new, "kept": None if kept is None else str(kept)})
    elif is_new:
        say(
            "the next start begins with an empty store"
            + ("" if kept is None else f"; the old one is kept: {kept.name}")
        )
    else:
        say(f"{database} is a store of its own now, with new keys; start the daemon")


def _refuse_in_use(database: Path) -> None:
    """A program may use the database without a daemon."""
    from wakeful.stores.sqlite.clock_hold import ClockHold

    holder = ClockHold(database).holder()
    if holder is not None:
        raise Ended(f"{holder} uses {database}", hint="stop it first")


def _start_new(database: Path) -> Path | None:
    """Put everything aside that says that a store was here."""
    from wakeful.stores.sqlite.identity import IdentityFile

    kept = put_aside(database, "new")
    IdentityFile(database).remove()
    database.with_name(database.name + ".clock").unlink(missing_ok=True)
    return kept


def _adopt(database: Path) -> None:
    if not database.is_file():
        raise Ended(
            f"there is no database at {database}",
            hint="put it back, restore a copy (wakeful restore FILE), or start with a new store: wakeful adopt --new",
        )
    try:
        with closing(sqlite3.connect(database)) as connection:
            damage = damage_of(connection)
            if damage is not None:
                raise Ended(f"{database} is damaged ({damage})", hint="restore a copy: wakeful restore FILE")
            if connection.execute(LOOK).fetchone() != (4,):
                raise Ended(f"{database} is not a Wakeful database", hint="name another file")
            mark_as_copy(connection)
            with connection:
                connection.execute(SET, ("store_id", secrets.token_hex(6)))
                connection.executemany(FORGET, [(name,) for name in KEYS])
                if connection.execute(HAS_LOGINS).fetchone() is not None:
                    connection.execute("DELETE FROM logins")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    except sqlite3.DatabaseError as error:
        raise Ended(f"{database} cannot be adopted ({error})", hint="restore a copy: wakeful restore FILE") from error
    identify(database)


def _forget_token(home: Path) -> None:
    """The next start draws another one."""
    from wakeful.server.daemon.token import TOKEN_NAME

    (home / TOKEN_NAME).unlink(missing_ok=True)
