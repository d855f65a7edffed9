"""Notify systemd of the daemon's state (`Type=notify`): READY means that it accepts requests."""

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
    """The service manager that started this process, if it wants notifications."""

    def __init__(self) -> None:
        # Removed from the environment: commands of schedules must not notify in the daemon's name.
        self._address = os.environ.pop(SOCKET, "")

    def tell(self, state: str) -> None:
        """Send the state; an unresponsive manager must not block the daemon."""
        if not self._address:
            return
        address = f"\0{self._address[1:]}" if self._address.startswith("@") else self._address
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as door:
                door.setblocking(False)
                door.sendto(state.encode(), address)
        except OSError as error:
            log.warning("could not notify the service manager of %s: %s", state, error)
