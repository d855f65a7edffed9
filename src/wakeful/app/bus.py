"""The bus for Python programs: whatever is committed is told to those who asked for it, after the commit.

Nobody has to listen, and as long as nobody does, nothing is made of what is noted: a program that never subscribes pays
nothing for any row.
"""

from collections.abc import Callable

from wakeful.observe.fan_out import FanOut
from wakeful.observe.stream import Handler, Stream
from wakeful.ports.clock import Clock
from wakeful.ports.sink import Sink


class Bus:
    """Streams of events with growing numbers, made when the first one subscribes."""

    def __init__(self) -> None:
        self._fan_out = FanOut()
        self._stream: Stream | None = None

    @property
    def fan_out(self) -> FanOut:
        """Where facts go out to whoever listens."""
        return self._fan_out

    def sink(self, given: Sink | None) -> Sink:
        """Where facts are told: whatever else listens to them is kept."""
        if isinstance(given, FanOut):
            if self._stream is not None:
                given.listen(self._stream.listen)
            self._fan_out = given
        return self._fan_out if given is None else given

    def on(self, handler: Handler, stream: str | None, clock: Clock) -> Callable[[], None]:
        """Call it with every event, or with those of one stream; answers how to stop."""
        if self._stream is None:
            self._stream = Stream(clock)
            self._fan_out.listen(self._stream.listen)
        return self._stream.on(handler, stream)
