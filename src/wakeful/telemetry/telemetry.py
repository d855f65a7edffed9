"""Everything that listens, put together for one home folder: stream, log, metrics, behind one sink."""

import asyncio
import logging
from pathlib import Path

from wakeful.ports.clock import Clock
from wakeful.ports.sink import Sink
from wakeful.telemetry.fan_out import FanOut
from wakeful.telemetry.log import Log, LogHandler, Redact, no_redaction
from wakeful.telemetry.metrics import Gauges, Metrics
from wakeful.telemetry.stream import Stream


class Telemetry:
    """Give its `sink` to `bootstrap.assemble`; close it last, when nothing more can happen."""

    def __init__(self, home: Path, clock: Clock, *, days: int = 7, redact: Redact = no_redaction) -> None:
        self.stream = Stream(clock)
        self.metrics = Metrics()
        self.log = Log(home / "logs", clock, server_log=home / "server.log", days=days, redact=redact)
        self._fan_out = FanOut()
        for listener in (self.metrics.listen, self.stream.listen, self.log.listen):
            self._fan_out.listen(listener)
        self._handler = LogHandler(self.log)
        logging.getLogger("wakeful").addHandler(self._handler)

    @property
    def sink(self) -> Sink:
        return self._fan_out

    def rendered_metrics(self, gauges: Gauges) -> bytes:
        """The text of `/metrics`; what only telemetry itself knows is filled in."""
        own = gauges._replace(log_lines_lost=self.log.lost, stream_subscribers=self.stream.subscribers)
        return self.metrics.render(own)

    async def close(self) -> None:
        """Pass on what is left, write it, and end the log's thread."""
        await self._fan_out.drained()
        logging.getLogger("wakeful").removeHandler(self._handler)
        await asyncio.to_thread(self.log.close)
