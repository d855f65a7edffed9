"""`wakeful up --demo`: a separate home, filled over the API as soon as the daemon responds."""

from __future__ import annotations

import json
import logging
import socket
import threading
from collections.abc import Mapping
from math import floor
from typing import TYPE_CHECKING, Final
from urllib.request import Request, urlopen

from wakeful.cli.errors import Ended
from wakeful.cli.invocation import Invocation, full_path
from wakeful.cli.render import say
from wakeful.server.demo import (
    AT_ONCE,
    DEMO_HOME,
    PAUSED,
    PROPOSAL,
    PROPOSER,
    PROPOSER_WORK,
    TOKEN_FILE,
    UNHEARD,
    NotTheDemo,
    prepare,
    things,
)

if TYPE_CHECKING:
    from wakeful.cli.client import Daemon
    from wakeful.server.daemon.sockets import Listening

log = logging.getLogger("wakeful.server.demo")

USUAL_PORT: Final = 8377
PATIENCE: Final = 60.0
"""Seconds; deploying a workflow calls each of its handlers once."""
USED: Final = 0.8
"""How much of the demo's budget is spent when it starts."""


def move_in(invocation: Invocation) -> None:
    """Use the demo's home for this invocation; the user's own home is not touched unless --home names it."""
    if not invocation.is_home_named:
        invocation.home = full_path(DEMO_HOME)
    try:
        prepare(invocation.home)
    except NotTheDemo as error:
        raise Ended(str(error), hint="name an empty folder with --home, or leave it out") from error
    except OSError as error:
        raise Ended(f"{invocation.home} cannot be used: {error.strerror}", hint="choose another --home") from error


def port_of(port: int | None) -> int | None:
    """The requested port; without one, any free port if the default is taken (by the user's own daemon)."""
    if port is not None:
        return port
    with socket.socket() as door:
        door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            door.bind(("127.0.0.1", USUAL_PORT))
        except OSError:
            return 0
    return None


def begin(invocation: Invocation, listening: Listening) -> None:
    """Fill the demo in a thread: the daemon's event loop must not wait for its own responses."""
    if not invocation.is_json:
        say(f"This is the demo: open {listening.address} and watch.")
        say(f"Try: wakeful --home {invocation.home} ls")
    threading.Thread(target=_furnish, args=(invocation, listening), name="wakeful-demo", daemon=True).start()


def _furnish(invocation: Invocation, listening: Listening) -> None:
    daemon = invocation.daemon()
    _post(daemon, "/api/channels/inbox/touch")  # a person is at the page, so messages for `last` go to the inbox
    for thing in things(invocation.home, listening.address):
        try:
            daemon.ask("PUT", thing.path, body=thing.body, timeout=PATIENCE)
        except Ended as error:
            log.warning(
                "the demo could not create %s: %s", thing.path, "; ".join([str(error), *map(str, error.faults)])
            )
    _post(daemon, f"/api/schedule/{PAUSED}/pause")
    _limit(daemon)
    _propose(listening.address, (invocation.home / TOKEN_FILE).read_text(encoding="utf-8").strip())
    for slug in (*AT_ONCE, UNHEARD):
        _post(daemon, f"/api/schedule/{slug}/run?wait=true")
    _post(daemon, "/api/wake", {"reason": "manual", "text": "Someone is looking at the demo."})


def _limit(daemon: Daemon) -> None:
    """A monthly budget of which one agent has used most."""
    try:
        spent = _spent(daemon)
        if spent == 0:  # a month that has just begun
            _post(daemon, f"/api/schedule/{PROPOSER_WORK}/run?wait=true")
            spent = _spent(daemon)
        if spent > 0:
            limit = floor((10_000 * spent - 1) / USED) / 10_000  # rounded up, it would be just below the warning
            body = {"period": "month", "limit": limit, "agent": PROPOSER}
            daemon.ask("PUT", "/api/budget", body=body)
    except Ended as error:
        log.warning("the demo could not set a budget: %s", error)


def _spent(daemon: Daemon) -> float:
    agents = daemon.get("/api/agents")["agents"]
    return float(next(agent["cost"]["month"] for agent in agents if agent["name"] == PROPOSER))


def _propose(address: str, token: str) -> None:
    """Propose a schedule as the agent does: with its token, over TCP, because the socket is for people."""
    headers = {"Authorization": f"Bearer {token}"}
    request = Request(  # noqa: S310 - the address of this daemon
        f"{address}/api/tools/put_schedule", json.dumps(PROPOSAL).encode(), headers
    )
    try:
        with urlopen(request, timeout=PATIENCE) as answer:  # noqa: S310 - likewise
            answer.read()
    except OSError as error:
        log.warning("the demo could not propose a schedule: %s", error)


def _post(daemon: Daemon, path: str, body: Mapping[str, str] | None = None) -> None:
    try:
        daemon.ask("POST", path, body=body or {})
    except Ended as error:
        log.warning("the demo could not create %s: %s", path, error)
