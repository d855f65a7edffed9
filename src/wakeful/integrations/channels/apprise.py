"""Any service supported by the apprise library. It reports only success or failure, so every error is retried.

The library is an extra (`wakeful[apprise]`): it is large, and most users do not need it.
"""

import contextlib
from typing import Final

from wakeful.integrations.system.threads import in_thread
from wakeful.ports.channel import Outcome, OutgoingMessage, Refused, Sent, Unsent

_MISSING: Final = "the apprise library is not installed; install it with pip install 'wakeful[apprise]'"


def _import_apprise() -> None:
    with contextlib.suppress(ImportError):  # `send` reports it
        import apprise  # noqa: F401 - imported only when something is sent


class AppriseChannel:
    """Notifies through one apprise URL."""

    kind = "apprise"
    address = "url"
    to: str | None = None

    def __init__(self, url: str) -> None:
        self._url = url

    async def send(self, message: OutgoingMessage) -> Outcome:
        return await in_thread(lambda: self._notify(message), name="apprise")

    async def prepare(self) -> None:
        await in_thread(_import_apprise, name="apprise")

    async def close(self) -> None:
        """Nothing to release."""

    def _notify(self, message: OutgoingMessage) -> Outcome:
        try:
            import apprise
        except ImportError:
            return Unsent(_MISSING)
        service = apprise.Apprise()
        if not service.add(self._url):
            return Refused("apprise does not know this address; see its list of services")
        # Plain text without interpretation: a reply must not be able to attach a file.
        is_sent = service.notify(
            body=message.text, title=message.slug or "", body_format=apprise.NotifyFormat.TEXT, interpret_escapes=False
        )
        return Sent() if is_sent else Unsent("apprise could not notify the service; see its own log")
