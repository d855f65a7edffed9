"""Sends spans to an OpenTelemetry collector, in a thread of its own.

OpenTelemetry is imported by that thread, when the first span is sent: a process that is not traced never loads it. A
collector that is down or slow costs spans and nothing else: the queue is bounded, and what does not fit is lost and
counted.
"""

import logging
import os
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

from wakeful.observe.spans import Span

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan

MISSING: Final = 'needs OpenTelemetry; install it with: pip install "wakeful[otel]"'
PATH: Final = "/v1/traces"
TRACES_ENDPOINT: Final = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
WAITING_MAX: Final = 20_000
"""Spans that may wait to be sent; a span takes about a kilobyte."""
BATCH: Final = 500
SEND_WITHIN: Final = 5.0
CLOSE_WITHIN: Final = 3.0
NODES_MAX: Final = 1_000
TROUBLE_MAX: Final = 300
_LOGGER: Final = "opentelemetry.exporter.otlp.proto.http.trace_exporter"
_NANOSECONDS: Final = 1_000_000  # in a millisecond


def missing_extra() -> str | None:
    """What to install before anything can be traced; None if all is there."""
    try:
        is_there = find_spec("opentelemetry.sdk") and find_spec("opentelemetry.exporter.otlp.proto.http")
    except ModuleNotFoundError:
        is_there = None
    return None if is_there else MISSING


def endpoint_in(environ: Mapping[str, str]) -> str | None:
    """The collector that OpenTelemetry's standard variables name, if any."""
    if environ.get("OTEL_SDK_DISABLED", "").lower() == "true" or environ.get("OTEL_TRACES_EXPORTER", "otlp") != "otlp":
        return None
    return environ.get(TRACES_ENDPOINT) or environ.get("OTEL_EXPORTER_OTLP_ENDPOINT") or None


def address_of(endpoint: str) -> str:
    """Where the spans of a collector go; the endpoint may name the path already, and a traces endpoint always does."""
    if endpoint == os.environ.get(TRACES_ENDPOINT):
        return endpoint
    base = endpoint.rstrip("/")
    return base if base.endswith(PATH) else base + PATH


class SpanExport:
    """The spans on their way to one collector."""

    def __init__(self, endpoint: str) -> None:
        self._endpoint = endpoint
        self._waiting: deque[Span] = deque()
        self._bell = threading.Condition()
        self._is_idle = True
        self._is_closed = False
        self._lost = 0
        self._trouble: str | None = None
        self._exporter: Any = None
        self._thread = threading.Thread(target=self._drive, name="wakeful-otlp", daemon=True)
        self._thread.start()

    @property
    def lost(self) -> int:
        """How many spans were not sent."""
        return self._lost

    @property
    def trouble(self) -> str | None:
        """Why the last spans could not be sent; None if they were."""
        return self._trouble

    def put(self, spans: Sequence[Span]) -> None:
        """Send these spans soon. Returns immediately."""
        with self._bell:
            room = 0 if self._is_closed else WAITING_MAX - len(self._waiting)
            self._waiting.extend(spans[:room])
            self._lost += max(0, len(spans) - room)
            self._is_idle = not self._waiting and self._is_idle
            self._bell.notify_all()

    def drain(self, within: float = CLOSE_WITHIN) -> bool:
        """Wait until everything so far is sent or lost; False if it took longer."""
        with self._bell:
            return self._bell.wait_for(lambda: self._is_idle, within)

    def close(self, within: float = CLOSE_WITHIN) -> None:
        """Send what is left and end the thread; a collector that does not respond is not waited for longer."""
        is_sent = self.drain(within if self._trouble is None else 0)
        with self._bell:
            self._is_closed = True
            self._bell.notify_all()
        if not is_sent and self._exporter is not None:
            self._exporter.shutdown()  # ends its wait for the next try
        self._thread.join(within)

    def _drive(self) -> None:
        with _CapturedLog() as said:
            while batch := self._next():
                said.text = None
                try:
                    self._trouble = None if self._send(batch) else _short(said.text or "it refused the spans")
                except Exception as error:  # spans that cannot be encoded must not end the thread
                    self._trouble = _short(f"{type(error).__name__}: {error}")
                if self._trouble is not None:
                    with self._bell:
                        self._lost += len(batch)
            if self._exporter is not None:
                self._exporter.shutdown()

    def _next(self) -> list[Span]:
        """The next spans to send; none when it is closed."""
        with self._bell:
            self._is_idle = not self._waiting
            self._bell.notify_all()
            self._bell.wait_for(lambda: self._waiting or self._is_closed)
            if self._is_closed:
                return []
            return [self._waiting.popleft() for _ in range(min(BATCH, len(self._waiting)))]

    def _send(self, batch: Sequence[Span]) -> bool:
        if self._exporter is None:
            self._encode, self._exporter = _made(address_of(self._endpoint))
        return bool(self._exporter.export([self._encode(span) for span in batch]).name == "SUCCESS")

    _encode: Callable[[Span], "ReadableSpan"]


class _CapturedLog(logging.Filter):
    """Keeps what the exporter logs in this thread, which becomes a finding, out of the log."""

    def __init__(self) -> None:
        super().__init__()
        self.text: str | None = None
        self._thread = threading.get_ident()

    def filter(self, record: logging.LogRecord) -> bool:
        if record.thread != self._thread:
            return True
        self.text = self.text or record.getMessage()  # the first says why, later ones that it gave up
        return False

    def __enter__(self) -> "_CapturedLog":
        logging.getLogger(_LOGGER).addFilter(self)
        return self

    def __exit__(self, *_: object) -> None:
        logging.getLogger(_LOGGER).removeFilter(self)


def _made(address: str) -> "tuple[Callable[[Span], ReadableSpan], Any]":
    """The encoder of spans, and the exporter; its headers and certificates are in `OTEL_EXPORTER_OTLP_…` variables."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope
    from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags

    release = version("wakeful")
    scope = InstrumentationScope("wakeful", release)
    resources: dict[str, Resource] = {}
    # `Resource.create` lets what it is given override the environment.
    service = str(OTELResourceDetector().detect().attributes.get("service.name") or "wakeful")

    def resource_of(node: str) -> Resource:
        if node not in resources:
            if len(resources) >= NODES_MAX:
                resources.clear()
            about = {"service.name": service, "service.version": release, "service.instance.id": node}
            resources[node] = Resource.create(about)
        return resources[node]

    def context_of(span_id: Any) -> SpanContext:
        sampled = TraceFlags(TraceFlags.SAMPLED)
        return SpanContext(int(span_id.trace_id, 16), int(span_id.span_id, 16), is_remote=False, trace_flags=sampled)

    def encode(span: Span) -> ReadableSpan:
        return ReadableSpan(
            span.name,
            context_of(span.id),
            None if span.parent is None else context_of(span.parent),
            resource_of(span.node),
            attributes=span.attributes,
            links=[Link(context_of(link)) for link in span.links],
            kind=SpanKind[span.kind.upper()],
            status=Status(StatusCode.UNSET) if span.error is None else Status(StatusCode.ERROR, span.error),
            start_time=span.started_at * _NANOSECONDS,
            end_time=span.ended_at * _NANOSECONDS,
            instrumentation_scope=scope,
        )

    return encode, OTLPSpanExporter(address, timeout=SEND_WITHIN)


def _short(text: str) -> str:
    return " ".join(text.split())[:TROUBLE_MAX]
