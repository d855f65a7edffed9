"""Metrics: text that parses, figures that are right, names that stand in the documentation."""

import re
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from features.kit import Bot, World, virtual
from telemetry.kit import open_told
from wakeful import every
from wakeful.core.time.instants import MINUTE, SECOND
from wakeful.observe.metrics import METRICS, Buckets, Gauges, Metrics

DOCS = Path(__file__).parents[2] / "docs" / "metrics.md"


def figures(metrics: Metrics, gauges: Gauges | None = None) -> dict[tuple[str, Any], float]:
    """Every sample of the text, by name and labels."""
    found: dict[tuple[str, Any], float] = {}
    for family in text_string_to_metric_families(metrics.render(gauges).decode()):
        for sample in family.samples:
            found[sample.name, tuple(sorted(sample.labels.items()))] = sample.value
    return found


def label(name: str, value: str) -> tuple[tuple[str, str], ...]:
    return ((name, value),)


@virtual
async def test_fires_outcomes_and_lateness_are_counted(world: World) -> None:
    """Six instants: a retry that ends well, two successes, an error, two blocked."""
    metrics = Metrics()
    bot = Bot(world)
    bot.script = [RuntimeError("no"), 10 * SECOND, 25 * MINUTE, RuntimeError("no"), RuntimeError("no"), None]
    app = await open_told(world, bot, metrics.listen)
    await app.add("tick", every("10m"), retry={"times": 1, "delay": "1m"})
    await world.until("01-01 01:05:00")
    found = figures(metrics)
    assert found["wakeful_runs_settled_total", label("outcome", "succeeded")] == 3
    assert found["wakeful_runs_settled_total", label("outcome", "failed")] == 1
    assert found["wakeful_runs_claimed_total", label("trigger", "schedule")] == 6
    assert found["wakeful_runs_deferred_total", label("reason", "retry")] == 2
    assert found["wakeful_instants_skipped_total", label("reason", "blocked")] == 2
    assert found["wakeful_run_lateness_seconds_count", ()] == 4
    assert found["wakeful_run_lateness_seconds_bucket", label("le", "0.005")] == 4
    assert found["wakeful_run_duration_seconds_count", ()] == 4
    assert found["wakeful_store_write_seconds_count", ()] > 10
    assert found["wakeful_ticks_total", ()] > 5
    assert found["wakeful_last_tick_timestamp_seconds", ()] > 1.7e9


@virtual
async def test_an_outage_a_crash_and_alerts_are_counted(world: World) -> None:
    """Missed instants by how many they are; a rescue; an alert by its kind."""
    app = await open_told(world, Bot(world, usual=60 * MINUTE))
    await app.add("tick", every("1h"), max_consecutive_errors=1)
    await world.until("01-01 01:30:00")
    await app.kill()
    await world.sleep("5h")
    metrics = Metrics()
    await open_told(world, Bot(world, usual=RuntimeError("no")), metrics.listen)
    await world.sleep("5m")
    found = figures(metrics)
    assert found["wakeful_runs_rescued_total", ()] == 1
    assert found["wakeful_alerts_total", label("incident", "failing")] == 1
    skipped_or_missed = [value for (name, _), value in found.items() if name.startswith("wakeful_instants_")]
    assert sum(skipped_or_missed) >= 4


def test_states_are_as_they_were_looked_up() -> None:
    """Gauges come from whoever asks; they cannot drift."""
    found = figures(
        Metrics(),
        Gauges(2, 3, 4, 5, 6.5, log_lines_lost=7, stream_subscribers=8, failing=9, late=10, incidents_open=11),
    )
    assert [
        found[f"wakeful_{name}", ()]
        for name in (
            *("nodes_live", "runs_running", "runs_waiting", "runs_stuck", "overdue_seconds"),
            *("log_lines_lost_total", "stream_subscribers"),
            *("schedules_failing", "schedules_late", "incidents_open"),
        )
    ] == [2, 3, 4, 5, 6.5, 7, 8, 9, 10, 11]


def test_every_metric_is_there_from_the_beginning() -> None:
    """A query over a counter that never counted finds its name (one with labels: its type)."""
    text = Metrics().render().decode()
    for metric in METRICS:
        assert re.search(rf"^# TYPE {metric.name}(_total)? {metric.kind}$", text, re.MULTILINE), metric.name


def test_reasons_that_gates_make_up_share_one_label() -> None:
    """Labels must stay few, whatever a gate says."""
    from wakeful.core.run.runs import stretch
    from wakeful.ports.sink import InstantsSkipped

    metrics = Metrics()
    rows = [
        stretch(
            run_id=n,
            kind="schedule",
            schedule_id=1,
            version=1,
            first=n,
            last=n,
            instants=1,
            outcome="skipped",
            reason=f"gate said {n}",
            now=n,
        )
        for n in range(50)
    ]
    metrics.listen([InstantsSkipped(1, rows, [1] * 50)], {})
    assert figures(metrics)["wakeful_instants_skipped_total", label("reason", "other")] == 50


def test_a_bucket_includes_its_upper_edge() -> None:
    """As Prometheus has it: less than or equal."""
    buckets = Buckets((1.0, 5.0))
    for value in (0.5, 1.0, 1.1, 5.0, 9.0):
        buckets.observe(value)
    assert buckets.samples() == ([("1.0", 2), ("5.0", 4), ("+Inf", 5)], 16.6)


def test_two_in_one_process_do_not_share_a_registry() -> None:
    """Nor the global one of the library."""
    first, second = Metrics(), Metrics()
    first.listen([], {})
    assert first.render() == second.render()


def test_the_documentation_has_exactly_these_metrics() -> None:
    """Name, kind, labels and meaning, line by line."""
    lines = [line for line in DOCS.read_text().splitlines() if line.startswith("| `wakeful_")]
    assert lines == [
        f"| `{m.name}{'_total' if m.kind == 'counter' else ''}` | {m.kind} | {', '.join(m.labels)} | {m.means} |"
        for m in METRICS
    ]
