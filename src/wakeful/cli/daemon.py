"""The daemon's life: start it, see it, stop it."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import click

from wakeful.cli import times
from wakeful.cli.faults import FAILED, Ended, no_daemon
from wakeful.cli.home import Running, make_home, running
from wakeful.cli.invocation import Invocation, command, end
from wakeful.cli.render import json_out, say

LOOK: Final = 0.05


@command("status")
def status_command(asked: Invocation) -> None:
    """Say whether the daemon runs, and how it is. Exit code 3 if there is none, 1 if it is not well."""
    from wakeful.cli.client import find
    from wakeful.cli.health import health_of

    daemon = find(asked.home, what="so nothing rings")
    health = health_of(daemon)
    upcoming = daemon.get("/api/upcoming", limit=1)["upcoming"]
    answer = {
        "running": True,
        "pid": daemon.running.pid,
        "url": daemon.running.url,
        "home": str(asked.home),
        "health": health,
        "next": upcoming[0] if upcoming else None,
    }
    if asked.is_json:
        json_out(answer)
    else:
        _tell(answer, daemon.running)
    if health.get("status") != "ok":
        end(FAILED)


@command("down")
@click.option("--timeout", metavar="DUR", default="60s", show_default=True, help="How long to wait for its end.")
def down_command(asked: Invocation, timeout: str) -> None:
    """Stop the daemon, and wait until it has ended; runs under way have their grace."""
    from wakeful.cli.moments import duration

    patience = duration(timeout, "--timeout") / 1000
    found = running(asked.home)
    if found is None:
        raise no_daemon(asked.home)
    _stop(found, asked.home, patience)
    if asked.is_json:
        json_out({"running": False, "pid": found.pid})
    else:
        say(f"the daemon (process {found.pid}) has ended")


@command("init")
def init_command(asked: Invocation) -> None:
    """Write a commented wakeful.toml into the home folder; an existing one is never overwritten."""
    from wakeful.cli.template import settings_template

    file = asked.home / "wakeful.toml"
    try:
        make_home(asked.home)
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as opened:
            opened.write(settings_template())
    except FileExistsError as error:
        raise Ended(f"{file} exists already, and is left as it is", hint=f"check it: wakeful check {file}") from error
    except OSError as error:
        raise Ended(f"{file} cannot be written: {error.strerror}", hint="name another --home") from error
    if asked.is_json:
        json_out({"file": str(file)})
    else:
        say(f"{file} written; every line in it is optional")


def _stop(found: Running, home: Path, patience: float) -> None:
    """Ask the process to end; it is ours as long as it holds the lock, so no stranger is ever signalled."""
    try:
        os.kill(found.pid, signal.SIGTERM)
    except ProcessLookupError:
        return
    except PermissionError as error:
        raise Ended(f"process {found.pid} belongs to somebody else", hint="ask its owner to stop it") from error
    give_up_at = time.monotonic() + patience
    while (still := running(home)) is not None and still.pid == found.pid:
        if time.monotonic() >= give_up_at:
            raise Ended(
                f"the daemon (process {found.pid}) has not ended within {patience:g}s",
                hint="it waits for runs under way; wait longer with --timeout, or see: wakeful ls --status running",
            )
        time.sleep(LOOK)


def _tell(answer: Mapping[str, Any], found: Running) -> None:
    from wakeful.cli.tables import facts

    health, fire = answer["health"], answer["next"]
    since = times.now()
    tick = times.parse(health.get("lastTick"))
    pairs: list[tuple[str, object]] = [
        ("daemon", f"running, process {found.pid}"),
        ("address", found.url),
        ("home", answer["home"]),
        ("clock", "alive" if health.get("status") == "ok" else "; ".join(health.get("problems") or ["not well"])),
        ("last tick", times.relative(tick, since)),
        ("running", health.get("running", times.NONE)),
        ("next", _fire(fire, since)),
    ]
    if health.get("stuckRuns"):
        pairs.append(("stuck", ", ".join(f"run {run}" for run in health["stuckRuns"])))
    facts(pairs)


def _fire(fire: Mapping[str, Any] | None, since: Any) -> str:
    if fire is None:
        return "nothing is planned"
    at = times.parse(fire["dueAt"])
    return f"{fire['slug']}, {times.wall(at)} ({times.relative(at, since)})"
