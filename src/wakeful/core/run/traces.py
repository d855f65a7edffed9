"""The ids of traces and spans.

Theory of operation
-------------------
A run is a trace. All its ids follow from its idempotency key: the trace and the span of the run from the key alone, an
attempt from its number and the time of its claim, a turn from its attempt, a delivery from its id. So they are known
before anything starts, nothing has to be stored, and every node derives the same ones, before and after a restart.

The attempt number alone does not identify an attempt: a busy target gets the same number again.
"""

import hashlib
from typing import NamedTuple

from wakeful.core.time.instants import Instant


class SpanId(NamedTuple):
    """A span: its trace, and its own id, in lower-case hexadecimal digits."""

    trace_id: str
    span_id: str

    @property
    def traceparent(self) -> str:
        """What is passed on to programs and services, as W3C Trace Context says; the span is recorded."""
        return f"00-{self.trace_id}-{self.span_id}-01"

    @classmethod
    def read(cls, traceparent: str) -> "SpanId":
        """The span that a `traceparent` of ours names."""
        _, trace_id, span_id, _ = traceparent.split("-")
        return cls(trace_id, span_id)


def run_of(key: str) -> SpanId:
    """The span of a run, the root of its trace."""
    return SpanId(_digits("trace", key)[:32], _digits("run", key)[:16])


def attempt_of(key: str, attempt: int, claimed_at: Instant) -> SpanId:
    """The span of an attempt, inside its run."""
    return SpanId(run_of(key).trace_id, _digits("attempt", key, str(attempt), str(claimed_at))[:16])


def turn_of(attempt: SpanId) -> SpanId:
    """The span of an agent's turn, inside its attempt."""
    return SpanId(attempt.trace_id, _digits("turn", *attempt)[:16])


def delivery_of(key: str, public_id: str) -> SpanId:
    """The span of a delivery, inside its run."""
    return SpanId(run_of(key).trace_id, _digits("delivery", key, public_id)[:16])


def trace_header(traceparent: str | None) -> dict[str, str]:
    """The header of a request that belongs to a span."""
    return {} if traceparent is None else {"traceparent": traceparent}


def _digits(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()
