"""Metrics in the Prometheus format, in a separate registry.

Theory of operation: facts come in batches of rows, so they are counted in plain numbers, a few additions per row,
and become samples only on a scrape (`collect`). States (how many run, wait, are stuck) are not counted, because a count
could drift; the caller reads them from the store and passes them in as `Gauges`.

The names are in `METRICS`, one line each; docs/metrics.md has the same table, and a test compares the two.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from wakeful.core.run.runs import Run
from wakeful.core.time.instants import SECOND, Instant
from wakeful.observe.slot_gauges import SlotGauges
from wakeful.ports.event_data import IncidentOpened
from wakeful.ports.plain_runs import alike
from wakeful.ports.sink import (
    ClockJumped,
    CommitTimed,
    Fact,
    InstantsMissed,
    InstantsSkipped,
    LeaseLost,
    Reported,
    RunsClaimed,
    RunsRescued,
    RunsSettled,
    RunsWaiting,
    Slugs,
    Ticked,
)
from wakeful.ports.store import Report

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

Kind: TypeAlias = Literal["counter", "histogram", "gauge"]


class MetricName(NamedTuple):
    """One metric of the table."""

    name: str
    kind: Kind
    labels: tuple[str, ...]
    means: str


METRICS: Final = (
    MetricName("wakeful_runs_claimed", "counter", ("trigger",), "attempts started, by the trigger of the run"),
    MetricName("wakeful_runs_settled", "counter", ("outcome",), "runs closed, by outcome"),
    MetricName("wakeful_runs_deferred", "counter", ("reason",), "times a run was deferred, by reason"),
    MetricName("wakeful_runs_rescued", "counter", (), "runs taken over from dead nodes"),
    MetricName("wakeful_instants_skipped", "counter", ("reason",), "planned instants skipped, by reason"),
    MetricName("wakeful_instants_missed", "counter", ("reason",), "planned instants missed, by reason"),
    MetricName("wakeful_run_lateness_seconds", "histogram", (), "time from due to the first attempt, planned runs"),
    MetricName("wakeful_run_duration_seconds", "histogram", (), "time from the first attempt to the end of a run"),
    MetricName("wakeful_store_write_seconds", "histogram", (), "time callers waited for a commit"),
    MetricName("wakeful_store_refusals", "counter", (), "writes that failed because the store was unavailable"),
    MetricName("wakeful_reports", "counter", ("what",), "events reported by features, by their name in the log"),
    MetricName("wakeful_alerts", "counter", ("incident",), "incidents reported to people, by kind"),
    MetricName("wakeful_clock_jumps", "counter", (), "detected wall clock jumps and suspends"),
    MetricName("wakeful_leases_lost", "counter", (), "times this node lost its lease"),
    MetricName("wakeful_ticks", "counter", (), "engine ticks"),
    MetricName("wakeful_tick_lag_seconds", "gauge", (), "lateness of the latest run in the last tick"),
    MetricName("wakeful_last_tick_timestamp_seconds", "gauge", (), "time of this process's last tick; 0: never"),
    MetricName("wakeful_nodes_live", "gauge", (), "nodes with a live lease"),
    MetricName("wakeful_runs_running", "gauge", (), "running runs, on all nodes"),
    MetricName("wakeful_runs_waiting", "gauge", (), "waiting runs"),
    MetricName("wakeful_runs_stuck", "gauge", (), "runs that could not be stopped"),
    MetricName("wakeful_overdue_seconds", "gauge", (), "how long the oldest due alarm has been overdue"),
    MetricName("wakeful_schedules_failing", "gauge", (), "schedules whose health is failing, 1000 at most"),
    MetricName("wakeful_schedules_late", "gauge", (), "schedules whose health is late, 1000 at most"),
    MetricName("wakeful_incidents_open", "gauge", (), "open incidents that were reported"),
    MetricName(
        "wakeful_cost_today_dollars",
        "gauge",
        (),
        "known cost of all agents in the current local day, in US dollars; falls to 0 at midnight",
    ),
    MetricName(
        "wakeful_cost_month_dollars", "gauge", (), "known cost of all agents in the current local month, in US dollars"
    ),
    MetricName("wakeful_slot_percentage", "gauge", ("slot",), "used share of a quota slot's window, in percent"),
    MetricName("wakeful_slot_warm", "gauge", ("slot",), "1 while a quota slot's window is open, as last read"),
    MetricName("wakeful_slot_quota_errors", "gauge", ("slot",), "consecutive failed readings of a quota slot"),
    MetricName(
        "wakeful_slot_wake_errors", "gauge", ("slot",), "consecutive failed or unconfirmed wakes of a quota slot"
    ),
    MetricName("wakeful_slot_disabled", "gauge", ("slot",), "1 while a quota slot or its wakes are disabled by errors"),
    MetricName("wakeful_deliveries_pending", "gauge", (), "pending deliveries"),
    MetricName("wakeful_deliveries_dead", "gauge", (), "dead letters that need attention"),
    MetricName("wakeful_log_lines_lost", "counter", (), "log lines that could not be written"),
    MetricName("wakeful_stream_subscribers", "gauge", (), "subscribers of the live stream"),
)

LATENESS: Final = (0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0, 60.0, 300.0, 3600.0)
DURATIONS: Final = (0.01, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 7200.0)
WRITES: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0, 5.0)

REASONS: Final = frozenset(
    {
        *("retry", "busy", "throttled", "crash", "shutdown", "queued", "lane", "quota", "resources"),
        *("paused", "disabled", "invalid", "removed", "edited", "backoff", "blocked", "coalesced", "standby"),
        *("outside active hours", "outage", "clock", "suspended", "restored", "label"),
        *("turn", "budget", "replaced", "event evicted"),
    }
)
"""Reasons with their own label; any other reason of a gate becomes `other`, to keep the number of labels small."""


class Gauges(NamedTuple):
    """Current states, read from the store by the caller."""

    nodes_live: int = 0
    running: int = 0
    waiting: int = 0
    stuck: int = 0
    overdue_seconds: float = 0.0
    failing: int = 0
    late: int = 0
    incidents_open: int = 0
    cost_today: float = 0.0
    cost_month: float = 0.0
    log_lines_lost: int = 0
    stream_subscribers: int = 0
    deliveries_pending: int = 0
    deliveries_dead: int = 0


class Buckets:
    """A histogram in plain numbers."""

    __slots__ = ("_counts", "_sum", "_uppers")

    def __init__(self, uppers: Sequence[float]) -> None:
        self._uppers = uppers
        self._counts = [0] * (len(uppers) + 1)
        self._sum = 0.0

    def observe(self, value: float, count: int = 1) -> None:
        self._counts[bisect_left(self._uppers, value)] += count
        self._sum += value * count

    def samples(self) -> tuple[list[tuple[str, float]], float]:
        """Cumulative counts with their upper bounds as text, and the sum."""
        total = 0
        samples: list[tuple[str, float]] = []
        for upper, count in zip((*map(str, self._uppers), "+Inf"), self._counts, strict=True):
            total += count
            samples.append((upper, total))
        return samples, self._sum


class Metrics(Collector):
    """Counts facts, and renders them for `/metrics`."""

    def __init__(self) -> None:
        self._counts: dict[str, Counter[str]] = {
            metric.name: Counter() for metric in METRICS if metric.kind == "counter"
        }
        self._lateness = Buckets(LATENESS)
        self._durations = Buckets(DURATIONS)
        self._writes = Buckets(WRITES)
        self._lag = 0.0
        self._last_tick_at: Instant = 0
        self._gauges = Gauges()
        self._slots = SlotGauges()
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self)

    # --- counting ----------------------------------------------------------------------------------------------------

    def listen(self, facts: Sequence[Fact], slugs: Slugs) -> None:
        """Take facts from a fan-out."""
        counts = self._counts
        for fact in facts:
            match fact:
                case CommitTimed(seconds=seconds, is_kept=is_kept):
                    self._writes.observe(seconds)
                    if not is_kept:
                        counts["wakeful_store_refusals"][""] += 1
                case Ticked(at, lag):
                    counts["wakeful_ticks"][""] += 1
                    self._lag, self._last_tick_at = lag / SECOND, at
                case RunsClaimed(_, runs):
                    self._claimed(runs)
                case RunsSettled(_, runs):
                    self._settled(runs)
                case RunsWaiting(_, runs):
                    counts["wakeful_runs_deferred"].update(_reason(run) for run in runs)
                case InstantsSkipped(_, runs, instants):
                    _add_instants(counts["wakeful_instants_skipped"], runs, instants)
                case InstantsMissed(_, runs, instants):
                    _add_instants(counts["wakeful_instants_missed"], runs, instants)
                case RunsRescued(_, runs):
                    counts["wakeful_runs_rescued"][""] += len(runs)
                case Reported(_, reports):
                    counts["wakeful_reports"].update(f"{report.stream}-{report.what}" for report in reports)
                    counts["wakeful_alerts"].update(filter(None, map(_reported_incident, reports)))
                    self._slots.listen(reports)
                case ClockJumped():
                    counts["wakeful_clock_jumps"][""] += 1
                case LeaseLost():
                    counts["wakeful_leases_lost"][""] += 1
                case _:
                    pass

    def _claimed(self, runs: Sequence[Run]) -> None:
        counter, observe = self._counts["wakeful_runs_claimed"], self._lateness.observe
        for run, count in alike(runs):
            counter[run.trigger] += count
            if run.attempt == 1 and run.trigger == "schedule" and run.started_at is not None:
                observe(max(run.started_at - run.due_at, 0) / SECOND, count)

    def _settled(self, runs: Sequence[Run]) -> None:
        counter, observe = self._counts["wakeful_runs_settled"], self._durations.observe
        for run, count in alike(runs):
            counter[run.outcome] += count
            if run.started_at is not None and run.ended_at is not None:
                observe(max(run.ended_at - run.started_at, 0) / SECOND, count)

    # --- rendering ---------------------------------------------------------------------------------------------------

    def render(self, gauges: Gauges | None = None) -> bytes:
        """The response text of `/metrics`."""
        if gauges is not None:
            self._gauges = gauges
        return generate_latest(self._registry)

    def collect(self) -> Iterable[Metric]:
        """Every metric of the table, in its order."""
        histograms = {
            "wakeful_run_lateness_seconds": self._lateness,
            "wakeful_run_duration_seconds": self._durations,
            "wakeful_store_write_seconds": self._writes,
        }
        states = self._states()
        for metric in METRICS:
            if metric.kind == "histogram":
                buckets, total = histograms[metric.name].samples()
                histogram = HistogramMetricFamily(metric.name, metric.means)
                histogram.add_metric([], buckets, total)
                yield histogram
            elif metric.kind == "gauge" and metric.labels:
                yield self._slots.family(metric.name, metric.means)
            elif metric.kind == "gauge":
                yield GaugeMetricFamily(metric.name, metric.means, value=states[metric.name])
            else:
                yield self._counter(metric)

    def _counter(self, metric: MetricName) -> Metric:
        counter = CounterMetricFamily(metric.name, metric.means, labels=metric.labels)
        counts = self._counts[metric.name]
        if metric.name == "wakeful_log_lines_lost":
            counter.add_metric([], self._gauges.log_lines_lost)
        elif not metric.labels:
            counter.add_metric([], counts[""])
        for label, count in sorted(counts.items()):
            if metric.labels:
                counter.add_metric([label], count)
        return counter

    def _states(self) -> Mapping[str, float]:
        gauges = self._gauges
        return {
            "wakeful_tick_lag_seconds": self._lag,
            "wakeful_last_tick_timestamp_seconds": self._last_tick_at / SECOND,
            "wakeful_nodes_live": gauges.nodes_live,
            "wakeful_runs_running": gauges.running,
            "wakeful_runs_waiting": gauges.waiting,
            "wakeful_runs_stuck": gauges.stuck,
            "wakeful_overdue_seconds": gauges.overdue_seconds,
            "wakeful_schedules_failing": gauges.failing,
            "wakeful_schedules_late": gauges.late,
            "wakeful_incidents_open": gauges.incidents_open,
            "wakeful_cost_today_dollars": gauges.cost_today,
            "wakeful_cost_month_dollars": gauges.cost_month,
            "wakeful_deliveries_pending": gauges.deliveries_pending,
            "wakeful_deliveries_dead": gauges.deliveries_dead,
            "wakeful_stream_subscribers": gauges.stream_subscribers,
        }


def _reported_incident(report: Report[Any]) -> str | None:
    """The kind of a reported incident."""
    return report.about.incident.partition(":")[0] if isinstance(report.about, IncidentOpened) else None


def _add_instants(counter: Counter[str], runs: Sequence[Run], instants: Sequence[int]) -> None:
    for run, count in zip(runs, instants, strict=True):
        counter[_reason(run)] += count


def _reason(run: Run) -> str:
    if run.reason is None:
        return "turn"
    return run.reason if run.reason in REASONS else "other"
