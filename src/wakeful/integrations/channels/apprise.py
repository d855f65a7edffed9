"""Any of the services the apprise library knows. It answers only whether it worked, so every error may be tried again.

The library is an extra (`wakeful[apprise]`): it is large, and most people need none of it.
"""

from typing import Final

from wakeful.integrations.system.threads import in_thread
from wakeful.ports.channel import Outcome, OutgoingMessage, Refused, Sent, Unsent

_MISSING: Final = "the apprise library is not installed; install it with pip install 'wakeful[apprise]'"


class AppriseChannel:
    """Notifies by one address of apprise's."""

    kind = "apprise"
    to: str | None = None

    def __init__(self, url: str) -> None:
        self._url = url

    async def send(self, letter: OutgoingMessage) -> Outcome:
        return await in_thread(lambda: self._notify(letter), name="apprise")

    async def close(self) -> None:
        """Nothing is held."""

    def _notify(self, letter: OutgoingMessage) -> Outcome:
        try:
            import apprise
        except ImportError:
            return Unsent(_MISSING)
        service = apprise.Apprise()
        if not service.add(self._url):
            return Refused("apprise does not know this address; see its list of services")
        # Plain text, and nothing in it is looked up: a reply must not be able to attach a file.
        is_sent = service.notify(
            body=letter.text, title=letter.slug or "", body_format=apprise.NotifyFormat.TEXT, interpret_escapes=False
        )
        return Sent() if is_sent else Unsent("apprise could not notify the service; its own log says why")
