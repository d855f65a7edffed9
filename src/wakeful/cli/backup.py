"""Back up the database while it is in use."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Final

import click

from wakeful.cli.client import refuse_agents
from wakeful.cli.errors import Ended
from wakeful.cli.home import database_of
from wakeful.cli.invocation import Invocation, command
from wakeful.cli.render import json_out, note, say
from wakeful.cli.verify import in_words, tell_faults, verify
from wakeful.engine.clock import SystemClock
from wakeful.engine.store_rollback import COPIED_AT

PAGES_AT_ONCE: Final = 1000

# Stored only in the copy.
MARK = "INSERT INTO meta (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value"


@command("backup")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--force", is_flag=True, help="Replace FILE if it exists.")
def backup_command(invocation: Invocation, file: Path, force: bool) -> None:
    """Copy the database while it is in use, with or without a running daemon.

    The copy is consistent, verified and readable only by you. FILE appears only once the copy is complete.
    """
    refuse_agents(invocation.home)
    database = database_of(invocation.home)
    if not database.is_file():
        raise Ended(f"no database at {database}", hint="start the daemon once, or choose another --home")
    if file.exists() and not force:
        raise Ended(f"{file} exists already", hint="name another file, or replace it with --force")
    size, verified = _copy(database, file, force, invocation.home)
    if invocation.is_json:
        json_out({"file": str(file), "bytes": size, "database": str(database), "faults": verified["faults"]})
        return
    say(f"{database} copied to {file} ({size:,} bytes): {in_words(verified)}")
    if verified["faults"]:  # the copy is complete, and so is what is wrong with the database
        tell_faults(file, verified["faults"])
        note("wakeful: the copy is as the database is; what is wrong is wrong there too: wakeful verify")


def _copy(database: Path, file: Path, force: bool, home: Path) -> tuple[int, dict[str, Any]]:
    """Copy it, verify the copy, and only then give it its name."""
    unborn = file.with_name(f".{file.name}.{os.getpid()}.part")
    try:
        os.close(os.open(unborn, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        _write(database, unborn)
        verified = verify(unborn, home)
        damage = next((fault for fault in verified["faults"] if fault["check"] in ("file", "integrity")), None)
        if damage is not None:
            hint = "the database itself may be damaged too: wakeful verify"
            raise Ended(f"the copy is damaged ({damage['problem']})", hint=hint)
        if force:
            unborn.replace(file)
        else:
            os.link(unborn, file)  # unlike a rename, never replaces a file created in the meantime
        return file.stat().st_size, verified
    except sqlite3.Error as error:
        raise Ended(f"the database could not be copied: {error}") from error
    except OSError as error:
        raise Ended(f"{file} could not be written: {error.strerror}") from error
    finally:
        with suppress(OSError):
            unborn.unlink()


def mark_as_copy(connection: sqlite3.Connection) -> None:
    """Mark the file as a copy: whatever opens it later must not repeat work done since (`adopt_copy`)."""
    with connection:
        connection.execute(MARK, (COPIED_AT, str(SystemClock().read().now)))


def damage_of(connection: sqlite3.Connection) -> str | None:
    """The first integrity error of the file; None if it is intact."""
    return next((line for (line,) in connection.execute("PRAGMA quick_check") if line != "ok"), None)


def _write(database: Path, copy: Path) -> None:
    with (
        closing(sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)) as source,
        closing(sqlite3.connect(copy)) as target,
    ):
        source.backup(target, pages=PAGES_AT_ONCE)
        mark_as_copy(target)
    with copy.open("rb") as written:
        os.fsync(written.fileno())
