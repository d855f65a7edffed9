"""Everything that is measured: its name, its unit, and whether more or less is better."""

from typing import Final, Literal, NamedTuple


class Measure(NamedTuple):
    """One row of the table."""

    name: str
    unit: str
    better: Literal["more", "less"]
    what: str


GROWTH: Final = (
    *("stats", "timeline", "list", "troubled", "show", "why", "runs", "failed runs", "upcoming", "today", "cost"),
    *("agents", "export", "outbox", "healthz", "metrics", "start", "prune", "backup"),
)
GROWN: Final = (
    "10,000 rows",
    "100,000 rows",
    "1,000,000 rows",
    "5,000,000 rows",
    "100,000 pending",
    "1,300 connections",
)

_ALL: Final = (
    Measure("fires", "/s", "more", "due together, no-op handler, every run recorded"),
    Measure("fires, recurring", "/s", "more", "the same with recurring schedules"),
    Measure("registrations", "/s", "more", "one by one, from several concurrent callers"),
    Measure("registrations in bulk", "/s", "more", "many in one call"),
    Measure("lateness p50", "ms", "less", "50 jobs due together, once a second"),
    Measure("lateness p99", "ms", "less", "50 jobs due together, once a second"),
    Measure("lateness at 1,000/s p50", "ms", "less", "1,000 fires a second, evenly spread"),
    Measure("lateness at 1,000/s p99", "ms", "less", "1,000 fires a second, evenly spread"),
    Measure("fires, a lane each", "/s", "more", "every schedule has its own lane"),
    Measure("fires, 8 lanes", "/s", "more", "all schedules share eight lanes, one run at a time in each"),
    Measure("fires, 1 node", "/s", "more", "one process ticks"),
    Measure("fires, 2 nodes", "/s", "more", "two processes tick on one store"),
    Measure("fires, 4 nodes", "/s", "more", "four processes tick on one store"),
    Measure("idle cpu", "s per 20 s", "less", "a full store and nothing due"),
    Measure("idle rss", "MB", "less", "a full store and nothing due"),
    Measure("start", "s", "less", "from the first import to ticking on a full store"),
    Measure("REST, GET one", "/s", "more", "200 clients of a daemon with 400 schedules and 20,000 ledger rows"),
    Measure("REST, list of 50", "/s", "more", "the same clients: 50 of the schedules"),
    Measure("REST, PUT", "/s", "more", "the same clients: each changes its schedule"),
    Measure("REST, 50 runs", "/s", "more", "the same clients: the newest rows of the ledger"),
    Measure("REST, timeline", "/s", "more", "the same clients: the first page of the time axis"),
    Measure("REST, stats", "/s", "more", "the same clients: the schedule that owns half of the ledger"),
    Measure("REST, run?wait=true", "/s", "more", "the same clients: each starts its schedule and waits for the end"),
    Measure("lateness beside REST", "ms", "less", "the worst start of a one-second schedule meanwhile"),
    Measure("lateness beside manual runs", "ms", "less", "the same while all clients send run?wait=true"),
    Measure(
        "workflow messages", "/s", "more", "from producer through topic to consumer, in three phases, 20 workflows"
    ),
    Measure("tick, idle workflows", "ms", "less", "one tick of the engine with 10,000 idle workflows"),
    Measure("simulated fires", "/s", "more", "in a process of its own, from the call to the answer"),
    Measure("simulated fires, half of them turns", "/s", "more", "the same for a plan with agents, usage and budgets"),
    Measure("difference of a draft", "s", "less", "what a draft changes in a week of a hundred schedules"),
    Measure("lateness beside a simulation", "ms", "less", "the worst start of a one-second schedule meanwhile"),
    *(
        Measure(f"growth, {name}, {grown}", "ms", "less", "one request, one step of pruning, or a backup")
        for grown in GROWN
        for name in GROWTH
    ),
    Measure("next cron", "/s", "more", "geometric mean of four common expressions in Europe/Berlin"),
    Measure("next cron, rare", "/s", "more", "0 0 29 2 *"),
)

MEASURES: Final = {measure.name: measure for measure in _ALL}
