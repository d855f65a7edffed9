"""Commands that only people may use: refused inside a run.

Most commands ask the daemon, which checks who calls. Those that act by themselves (they send a signal, or write files)
ask it first. While no daemon responds, the environment and the parents of this process are all there is to go by.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

from wakeful.cli.client import RUN_TOKEN_VARIABLE, Daemon, is_own_home, socket_route
from wakeful.cli.errors import Ended
from wakeful.cli.home import running
from wakeful.server.daemon.home import SOCKET_NAME, holder_of

OWNER: Final = "admin"


def only_people(home: Path, what: str) -> None:
    """Refuse a process that descends from a run of this home's daemon."""
    who = _known_by_daemon(home)
    if who is None and _is_in_a_run(home):
        who = "a run"
    if who is not None and who != OWNER:
        raise Ended(f"only a person can {what}, and this process belongs to {who} of the daemon of {home}")


def _known_by_daemon(home: Path) -> str | None:
    """Who the daemon takes this process for: the name of a run, `admin` for its owner; None if it does not respond."""
    path = home / SOCKET_NAME
    with suppress(Ended):
        process = running(home)
        if process is not None and path.is_socket():
            # The token of the run is not sent: this is about the process, which may have dropped it.
            caller = Daemon(process, home, socket_route(process, path)).get("/api/caller")
            return OWNER if caller.get("role") == OWNER else str(caller.get("name"))
    return None


def _is_in_a_run(home: Path) -> bool:
    from wakeful.integrations.actions.ancestry import ancestry_of

    if os.environ.get(RUN_TOKEN_VARIABLE) and is_own_home(home):
        return True
    holder, ancestry = holder_of(home), ancestry_of(os.getppid())
    return holder is not None and ancestry is not None and holder.pid in ancestry.leaders
