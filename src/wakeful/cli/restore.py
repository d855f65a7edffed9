"""Restore the database from a copy."""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import Final

import click

from wakeful.cli.backup import damage_of, mark_as_copy
from wakeful.cli.caller import only_people
from wakeful.cli.errors import Ended
from wakeful.cli.home import database_of
from wakeful.cli.invocation import Invocation, command
from wakeful.cli.render import json_out, say
from wakeful.core.time.instants import format_instant
from wakeful.engine.clock import SystemClock
from wakeful.server.daemon.home import holder_of

SUFFIXES: Final = ("", "-wal", "-shm")
"""An SQLite database in use is three files; a copy next to old -wal and -shm files would look damaged."""

# Whether it is a Wakeful database.
LOOK = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name IN ('schedules', 'cadences', 'runs', 'meta')"


@command("restore")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path, exists=True, dir_okay=False))
def restore_command(invocation: Invocation, file: Path) -> None:
    """Restore the database from a copy; the daemon must be stopped.

    The current database is kept next to it under another name. Runs that may have happened since the copy was made are
    not repeated; `wakeful why` explains them as restored.
    """
    holder = holder_of(invocation.home)
    if holder is not None:
        raise Ended(f"{holder.in_words()} holds {invocation.home}", hint="stop it first: wakeful down")
    only_people(invocation.home, "restore the database")
    database = database_of(invocation.home)
    unborn = database.with_name(f".{database.name}.{os.getpid()}.part")
    try:
        _prepare(file, unborn)
        kept = put_aside(database, "restore")
        unborn.replace(database)
        identify(database)
    except OSError as error:
        raise Ended(f"{file} could not be restored: {error.strerror}") from error
    finally:
        with suppress(OSError):
            unborn.unlink()
    if invocation.is_json:
        json_out({"database": str(database), "from": str(file), "kept": None if kept is None else str(kept)})
        return
    say(
        f"{database} was restored from {file}"
        + ("" if kept is None else f"; the previous database is kept as {kept.name}")
    )
    say("start the daemon: work done since the copy was made is not repeated")


def _prepare(file: Path, unborn: Path) -> None:
    """Copy the file beside the database, check it, mark it as a copy, and sync it to disk."""
    os.close(os.open(unborn, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    if not file.is_file():
        raise Ended(f"{file} is not a regular file", hint="choose a file made by wakeful backup")
    shutil.copyfile(file, unborn)
    try:
        with closing(sqlite3.connect(unborn)) as connection:
            damage = damage_of(connection)
            if damage is not None:
                raise Ended(f"{file} is damaged ({damage})", hint="choose another copy")
            if connection.execute(LOOK).fetchone() != (4,):
                raise Ended(f"{file} is not a Wakeful database", hint="choose a file made by wakeful backup")
            mark_as_copy(connection)
    except sqlite3.DatabaseError as error:
        raise Ended(f"{file} is not a database ({error})", hint="choose a file made by wakeful backup") from error
    with unborn.open("rb") as written:
        os.fsync(written.fileno())


def identify(database: Path) -> None:
    """Write the file beside the database: this is the store of this home from now on, as far as it has got."""
    from wakeful.stores.sqlite.identity import IdentityFile, in_main_file

    identity, file = in_main_file(database), IdentityFile(database)
    if identity is None:
        file.remove()
    else:
        file.write(identity)


def put_aside(database: Path, why: str) -> Path | None:
    """Rename the current database and the files that belong to it, whichever of them exist."""
    if not any(database.with_name(database.name + suffix).exists() for suffix in SUFFIXES):
        return None
    stamp = format_instant(SystemClock().read().now).replace(":", "").replace(".", "")
    kept = database.with_name(f"{database.name}.before-{why}-{stamp}")
    for suffix in SUFFIXES:
        with suppress(FileNotFoundError):
            database.with_name(database.name + suffix).rename(kept.with_name(kept.name + suffix))
    return kept
