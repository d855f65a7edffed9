"""Statistics, the same for all schedulers."""

from collections.abc import Sequence

from bench.lines import emit


def percentile(samples: Sequence[float], share: float) -> float:
    """The smallest sample that at least this share of all samples does not exceed."""
    ordered = sorted(samples)
    return ordered[min(len(ordered) - 1, max(0, round(share * len(ordered)) - 1))]


def emit_lateness(measure: str, samples: Sequence[float]) -> None:
    """Lateness in milliseconds, from samples in seconds."""
    emit(f"{measure} p50", percentile(samples, 0.50) * 1000, fires=len(samples))
    emit(f"{measure} p99", percentile(samples, 0.99) * 1000, worst=max(samples) * 1000)
