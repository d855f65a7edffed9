"""The event bus for Python programs: subscribers get every committed event, after the commit.

Without subscribers no events are built: a program that never subscribes pays nothing for any row.
"""

from collections.abc import Callable

from wakeful.observe.fan_out import FanOut
from wakeful.observe.stream import Handler, Stream
from wakeful.ports.clock import Clock
from wakeful.ports.sink import Sink


class Bus:
    """Numbered streams of events, created on the first subscription."""

    def __init__(self) -> None:
        self._fan_out = FanOut()
        self._stream: Stream | None = None
        self._is_connected = True

    @property
    def fan_out(self) -> FanOut:
        """Distributes facts to all listeners."""
        return self._fan_out

    @property
    def is_connected(self) -> bool:
        """Whether listeners hear of this process's commits: a given sink may keep them to itself."""
        return self._is_connected

    def sink(self, given: Sink | None) -> Sink:
        """The sink for facts; a given sink is used, and its listeners are kept."""
        if isinstance(given, FanOut):
            if self._stream is not None:
                given.listen(self._stream.listen)
            self._fan_out = given
        self._is_connected = given is None or isinstance(given, FanOut)
        return self._fan_out if given is None else given

    def on(self, handler: Handler, stream: str | None, clock: Clock) -> Callable[[], None]:
        """Call a function with every event, or with those of one stream; returns a function that unsubscribes."""
        if self._stream is None:
            self._stream = Stream(clock)
            self._fan_out.listen(self._stream.listen)
        return self._stream.on(handler, stream)
