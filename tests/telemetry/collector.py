"""An OTLP/HTTP receiver on loopback: decodes what it gets with the official protobufs, and keeps it."""

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue

ERROR = 2
KINDS = {1: "internal", 3: "client", 4: "producer"}


class Received(NamedTuple):
    """One span as it arrived; times in milliseconds."""

    trace: str
    span: str
    parent: str
    name: str
    kind: str
    began: int
    ended: int
    attributes: dict[str, Any]
    resource: dict[str, Any]
    links: list[tuple[str, str]]
    error: str | None


class Collector:
    """What arrived so far."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.spans: list[Received] = []
        self.paths: set[str] = set()
        self.changed = threading.Condition()

    def named(self, start: str) -> list[Received]:
        """Those whose name starts so, by time."""
        return sorted((one for one in self.spans if one.name.startswith(start)), key=lambda one: one.began)

    def of_run(self, run_id: int) -> list[Received]:
        """Those of one run."""
        return [one for one in list(self.spans) if one.attributes["wakeful.run_id"] == str(run_id)]

    def wait(self, count: int, within: float) -> None:
        """Wait until this many arrived."""
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.spans) >= count, within), self.spans

    def take(self, path: str, body: bytes) -> None:
        request = ExportTraceServiceRequest.FromString(body)
        spans = [
            _received(span, _values(group.resource.attributes))
            for group in request.resource_spans
            for scope in group.scope_spans
            for span in scope.spans
        ]
        with self.changed:
            self.paths.add(path)
            self.spans += spans
            self.changed.notify_all()


@contextmanager
def collecting() -> Iterator[Collector]:
    """A collector that listens."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            collector.take(self.path, gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        collector = Collector(f"http://127.0.0.1:{server.server_port}")
        serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        serving.start()
        try:
            yield collector
        finally:
            server.shutdown()
            serving.join()


def _received(span: Any, resource: dict[str, Any]) -> Received:
    return Received(
        span.trace_id.hex(),
        span.span_id.hex(),
        span.parent_span_id.hex(),
        span.name,
        KINDS[span.kind],
        span.start_time_unix_nano // 1_000_000,
        span.end_time_unix_nano // 1_000_000,
        _values(span.attributes),
        resource,
        [(link.trace_id.hex(), link.span_id.hex()) for link in span.links],
        span.status.message if span.status.code == ERROR else None,
    )


def _values(attributes: Any) -> dict[str, Any]:
    def value(one: KeyValue) -> Any:
        return getattr(one.value, one.value.WhichOneof("value"))

    return {one.key: value(one) for one in attributes}
