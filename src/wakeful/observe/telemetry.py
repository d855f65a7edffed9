"""Stream, log and metrics of one home folder behind one sink."""

import asyncio
import logging
from logging import WARNING
from pathlib import Path
from typing import Final

from wakeful.core.time.instants import Instant
from wakeful.observe.fan_out import FanOut
from wakeful.observe.log import Log, LogHandler, Redact, no_redaction
from wakeful.observe.log_reading import RunLog, read_run
from wakeful.observe.metrics import Gauges, Metrics
from wakeful.observe.stream import Stream
from wakeful.ports.clock import Clock
from wakeful.ports.sink import Sink

WRITTEN_WITHIN: Final = 1.0
"""Seconds a reader of a run's log waits for its last lines."""


FOREIGN: Final = ("asyncio", "uvicorn")
"""Third-party loggers whose warnings go to our log: their failures may end the daemon."""


class Telemetry:
    """Pass its `sink` to `bootstrap.assemble`; close it last."""

    def __init__(self, home: Path, clock: Clock, *, days: int = 7, redact: Redact = no_redaction) -> None:
        self.stream = Stream(clock)
        self.metrics = Metrics()
        self._folder = home / "logs"
        self.log = Log(self._folder, clock, server_log=home / "server.log", days=days, redact=redact)
        self._fan_out = FanOut()
        for listener in (self.metrics.listen, self.stream.listen, self.log.listen):
            self._fan_out.listen(listener)
        self._handlers = {"wakeful": LogHandler(self.log), **{name: LogHandler(self.log, WARNING) for name in FOREIGN}}
        for name, handler in self._handlers.items():
            logging.getLogger(name).addHandler(handler)

    @property
    def sink(self) -> Sink:
        return self._fan_out

    def rendered_metrics(self, gauges: Gauges) -> bytes:
        """The response text of `/metrics`, including telemetry's own values."""
        own = gauges._replace(log_lines_lost=self.log.lost, stream_subscribers=self.stream.subscribers)
        return self.metrics.render(own)

    async def log_of_run(self, run_id: int, since: Instant, until: Instant) -> RunLog:
        """The log lines of a run so far."""
        await self._fan_out.drained()

        def read() -> RunLog:
            self.log.drain(WRITTEN_WITHIN)
            return read_run(self._folder, run_id, since=since, until=until)

        return await asyncio.to_thread(read)

    async def close(self) -> None:
        """Flush everything and end the log's thread."""
        await self._fan_out.drained()
        for name, handler in self._handlers.items():
            logging.getLogger(name).removeHandler(handler)
        await asyncio.to_thread(self.log.close)
