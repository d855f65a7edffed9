"""Telling systemd how the daemon stands (`Type=notify`): started means that it answers, not that it was begun."""

from __future__ import annotations

import logging
import os
import socket
from typing import Final

log = logging.getLogger("wakeful.server.daemon")

SOCKET: Final = "NOTIFY_SOCKET"
READY: Final = "READY=1"
STOPPING: Final = "STOPPING=1"


class ServiceManager:
    """Whoever started this process, if it wants to be told."""

    def __init__(self) -> None:
        # Taken out of the environment: the commands of schedules must not speak for the daemon.
        self._address = os.environ.pop(SOCKET, "")

    def tell(self, state: str) -> None:
        """Say it; nobody who does not listen can hold the daemon up."""
        if not self._address:
            return
        address = f"\0{self._address[1:]}" if self._address.startswith("@") else self._address
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as door:
                door.setblocking(False)
                door.sendto(state.encode(), address)
        except OSError as error:
            log.warning("the service manager could not be told %s: %s", state, error)
