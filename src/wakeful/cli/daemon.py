"""Start the daemon, show its status, stop it."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import click

from wakeful.cli import times
from wakeful.cli.caller import only_people
from wakeful.cli.errors import FAILED, Ended, no_daemon
from wakeful.cli.home import Running
from wakeful.cli.invocation import Invocation, command, end
from wakeful.cli.render import json_line, json_out, note, say
from wakeful.core.time.instants import format_instant
from wakeful.server.daemon.home import holder_of

LOOK: Final = 0.05
LOOK_AT_RUNS: Final = 5.0
"""Seconds that `down` waits for the list of runs."""
NAMED_MAX: Final = 5


@command("up")
@click.option(
    "--host", metavar="ADDRESS", help="Address to listen on; default: [server] in wakeful.toml, or 127.0.0.1."
)
@click.option("--port", type=click.IntRange(0, 65_535), help="Port; 0 picks a free one; default 8377.")
@click.option("--store", metavar="URL", help="The store: sqlite:///FILE or postgresql://…")
@click.option(
    "--demo",
    is_flag=True,
    help="Start a demo in a separate home folder (~/.wakeful-demo), with schedules that run every few seconds.",
)
def up_command(invocation: Invocation, host: str | None, port: int | None, store: str | None, demo: bool) -> None:
    """Start the daemon in the foreground. Stop it with Ctrl-C, or with: wakeful down."""
    import logging

    from wakeful.cli import demo as demonstration
    from wakeful.cli.agent_states import HOW_TO_ADD, NO_AGENT, has_only_echo
    from wakeful.server.daemon.home import STORE_REFUSED, DaemonRefused, StoreRefused
    from wakeful.server.daemon.process import run
    from wakeful.server.daemon.sockets import Listening
    from wakeful.server.daemon.stderr_log import log_to_stderr

    if demo:
        demonstration.move_in(invocation)
        port = demonstration.port_of(port)

    def ready(listening: Listening) -> None:
        # Anyone who reads the link can log in: it is not written into a file, or into the log of a service manager.
        link = listening.link if sys.stdout.isatty() else None
        if invocation.is_json:
            json_line(
                {
                    "running": True,
                    "pid": os.getpid(),
                    "url": listening.address,
                    "home": str(invocation.home),
                    "link": link,
                }
            )
        else:
            say(f"Wakeful is listening on {listening.address}")
            if link is not None:
                say(f"Open the page: {link}\nThe link works once; for another: wakeful open")
            elif listening.link is not None:
                say("Open the page: wakeful open")
            say("Stop it with Ctrl-C.")
            if not demo and has_only_echo(invocation.home):
                note(f"{NO_AGENT[0].upper()}{NO_AGENT[1:]}.\n{HOW_TO_ADD[0].upper()}{HOW_TO_ADD[1:]}.")
        if demo:
            demonstration.begin(invocation, listening)

    # Our own loggers log everything (the daemon sets that up), libraries only warnings.
    log_to_stderr(logging.WARNING)
    try:
        run(invocation.home, host=host, port=port, store=store, on_ready=ready)
    except StoreRefused as refused:
        raise Ended(str(refused), code=STORE_REFUSED) from refused
    except DaemonRefused as refused:
        raise Ended(str(refused)) from refused


@command("status")
def status_command(invocation: Invocation) -> None:
    """Show whether the daemon is running, and its health. Exit code 3 if it is not running, 1 if its clock or its store
    fails. A schedule that fails is listed, and is no failure of the daemon."""
    from wakeful.cli.client import find
    from wakeful.cli.health import health_of, is_healthy

    daemon = find(invocation.home, what="so no schedule fires")
    health = health_of(daemon)
    upcoming = daemon.get("/api/upcoming", limit=1)["upcoming"]
    nodes = daemon.get("/api/nodes")["nodes"]
    answer: dict[str, Any] = {
        "running": True,
        "pid": daemon.running.pid,
        "url": daemon.running.url,
        "home": str(invocation.home),
        "startedAt": format_instant(daemon.running.started_at),
        "health": health,
        "next": upcoming[0] if upcoming else None,
        "labels": next((node["labels"] for node in nodes if node["pid"] == daemon.running.pid), []),
    }
    if invocation.is_json:
        json_out(answer)
    else:
        _tell(answer, daemon.running)
    if not is_healthy(health):
        end(FAILED)


@command("down")
@click.option(
    "--timeout", metavar="DUR", default="60s", show_default=True, help="How long to wait until it has stopped."
)
def down_command(invocation: Invocation, timeout: str) -> None:
    """Stop the daemon and wait until it has exited; runs in progress may finish within limits.shutdown_grace."""
    from wakeful.cli.time_options import duration

    patience = duration(timeout, "--timeout") / 1000
    holder = holder_of(invocation.home)
    if holder is None:
        raise no_daemon(invocation.home)
    only_people(invocation.home, "stop the daemon")
    _say_what_holds_it(invocation.home)
    _stop(holder.pid, invocation.home, patience)
    if invocation.is_json:
        json_out({"running": False, "pid": holder.pid})
    else:
        say(f"the daemon (process {holder.pid}) has stopped")


def _say_what_holds_it(home: Path) -> None:
    """Note which runs the daemon will wait for; it does not answer while it stops."""
    from wakeful.cli.client import find

    try:
        daemon = find(home)
        runs = daemon.get("/api/runs", outcome="running", limit=NAMED_MAX + 1, timeout=LOOK_AT_RUNS)["runs"]
        grace = daemon.get("/api/config", timeout=LOOK_AT_RUNS)["settings"]["limits"]["shutdown_grace"]
    except (Ended, LookupError):  # it is stopped all the same
        return
    if runs:
        named = [f"{run['slug']} (run {run['runId']})" for run in runs[:NAMED_MAX]]
        more = ["and more"] if len(runs) > NAMED_MAX else []
        note(f"it waits for {', '.join([*named, *more])}, for at most {grace} (limits.shutdown_grace)")


def _stop(pid: int, home: Path, patience: float) -> None:
    """Send SIGTERM. The process holds the lock, so the pid cannot have been reused."""
    try:
        os.kill(pid, signal.SIGTERM)
    except ProcessLookupError:
        return
    except PermissionError as error:
        raise Ended(f"process {pid} belongs to another user", hint="ask its owner to stop it") from error
    give_up_at = time.monotonic() + patience
    while (still := holder_of(home)) is not None and still.pid == pid:
        if time.monotonic() >= give_up_at:
            raise Ended(
                f"the daemon (process {pid}) has not stopped within {patience:g}s",
                hint="it waits for runs in progress; wait longer with --timeout, or see: wakeful ls --status running",
            )
        time.sleep(LOOK)


def _tell(answer: Mapping[str, Any], process: Running) -> None:
    from wakeful.cli.health import findings_in_short
    from wakeful.cli.tables import facts

    health, fire = answer["health"], answer["next"]
    since = times.now()
    tick = times.parse(health.get("lastTick"))
    pairs: list[tuple[str, object]] = [
        ("daemon", f"running as process {process.pid}, since {times.when(answer['startedAt'], since)}"),
        ("address", process.url),
        ("home", answer["home"]),
        *findings_in_short(health),
        ("last tick", times.relative(tick, since)),
        ("running", health.get("running", times.NONE)),
        ("next", _fire(fire, since)),
    ]
    if answer["labels"]:
        pairs.append(("labels", ", ".join(answer["labels"])))
    if health.get("stuckRuns"):
        pairs.append(("stuck", ", ".join(f"run {run}" for run in health["stuckRuns"])))
    facts(pairs)


def _fire(fire: Mapping[str, Any] | None, since: datetime) -> str:
    return "nothing is planned" if fire is None else f"{fire['slug']}, {times.when(fire['dueAt'], since)}"
