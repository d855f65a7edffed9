"""`runs`, `log`, `stats` and `why`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import click

from wakeful.cli import terminal_text as inert
from wakeful.cli import times
from wakeful.cli.client import Daemon, owner_path, schedule_path
from wakeful.cli.errors import Misused, no_daemon
from wakeful.cli.invocation import Invocation, command
from wakeful.cli.render import json_line, json_out, note
from wakeful.cli.slugs import complete_slug, optional_slug_argument, slug_argument

if TYPE_CHECKING:
    from wakeful.cli.stored import Source

SLOT: Final = "slot:"
WORKFLOW: Final = "workflow:"
CANCEL_WITHIN: Final = 15.0
CANCEL_POLL: Final = 0.2
RUN_ID_MAX: Final = 18
"""Maximum number of digits."""
OUTCOMES: Final = (
    *("succeeded", "failed", "timedOut", "unconfirmed", "unknown"),
    *("cancelled", "skipped", "missed", "running", "waiting"),
)


@command("runs")
@click.argument("words", nargs=-1, metavar="[SLUG | show ID | cancel ID | replay ID]", shell_complete=complete_slug)
@click.option("--limit", type=click.IntRange(1, 10_000), default=20, show_default=True, help="Show at most this many.")
@click.option(
    "--outcome", metavar="OUTCOME", type=click.Choice(OUTCOMES), help="Show only runs with this outcome, e.g. failed."
)
def runs_command(invocation: Invocation, words: tuple[str, ...], limit: int, outcome: str | None) -> None:
    """List runs, newest first: all of them, or those of one schedule.

    SLUG may also be a removed schedule, heartbeat, slot:NAME or workflow:ID. `show ID` prints one run
    in full: its output, attempts, usage and deliveries. `cancel ID` ends a run that is running or
    waiting. `replay ID` repeats a run that has ended, for the same planned time.
    """
    match words:
        case ("cancel", run_id):
            _cancel(invocation, run_id)
            return
        case ("replay", run_id):
            _replay(invocation, run_id)
            return
        case ("show", run_id):
            _show(invocation, run_id)
            return
        case ("show" | "cancel" | "replay" as verb,):
            raise click.UsageError(
                f"name the run: wakeful runs {verb} ID (the ids are in the first column of wakeful runs)"
            )
        case (_, _, *_):
            raise click.UsageError("write: wakeful runs, wakeful runs SLUG, or wakeful runs show|cancel|replay ID")
    runs = invocation.source().pages(_runs_path(words[0] if words else None), "runs", limit=limit, outcome=outcome)
    if invocation.is_json:
        json_out({"runs": runs, "next": None})
    elif not runs:
        note("no runs yet")
    else:
        _list(runs)


@command("log")
@optional_slug_argument
@click.option("-f", "--follow", is_flag=True, help="Keep printing new runs; stop with Ctrl-C.")
@click.option(
    "--limit", type=click.IntRange(0, 10_000), default=20, show_default=True, help="How many past runs to print."
)
def log_command(invocation: Invocation, slug: str | None, follow: bool, limit: int) -> None:
    """Print past runs, oldest first, one line each; with -f also new ones as they happen.

    With -o json each line is one JSON object.
    """
    if not follow:
        _look_back(invocation, invocation.source(), slug, limit)
        return
    daemon = invocation.daemon()
    try:
        # Subscribe before reading the past: a run in between then shows up twice at most, and duplicates are dropped.
        with daemon.following("/api/stream", streams="runs") as events:
            printed = _look_back(invocation, daemon, slug, limit, known=REREAD)
            _follow(invocation, daemon, events, slug, printed)
    except KeyboardInterrupt:
        return
    raise no_daemon(invocation.home, "any more")


@command("stats")
@slug_argument
@click.option("--since", metavar="T", help="Start at this time, or this long ago, such as 7d; default: all history.")
def stats_command(invocation: Invocation, slug: str, since: str | None) -> None:
    """Show statistics for one schedule: counts, success rate, durations.

    SLUG may also be heartbeat, slot:NAME or workflow:ID.
    """
    from wakeful.cli.time_options import ago

    start = None if since is None else ago(since, "--since")
    answer = invocation.source().get(owner_path(slug, "/stats"), since=start)
    if invocation.is_json:
        json_out(answer)
    else:
        _record(slug, answer)


@command("why")
@slug_argument
@click.option(
    "--at", metavar="T", help="The time in question: 9:00 (today), 'yesterday 9:00', a date and time, or 2h (ago)."
)
def why_command(invocation: Invocation, slug: str, at: str | None) -> None:
    """Explain in one sentence why a schedule ran, did not run, or will not run.

    SLUG may also be heartbeat, slot:NAME or workflow:ID.
    """
    source = invocation.source()
    answer = source.get(owner_path(slug, "/why"), at=None if at is None else _moment_of(source, slug, at))
    if invocation.is_json:
        json_out(answer)
        return
    from wakeful.cli.tables import paragraph

    # A schedule's sentence uses its own zone; the heartbeat, slots and workflows have none.
    is_plain = slug != "heartbeat" and ":" not in slug
    paragraph(answer["sentence"] if is_plain else times.localised(answer["sentence"]))


def _check_id(run_id: str) -> None:
    if not run_id.isascii() or not run_id.isdecimal() or len(run_id) > RUN_ID_MAX:
        words = f"{run_id!r} is not a run id; the ids are in the first column of: wakeful runs"
        raise Misused(words)


def _cancel(invocation: Invocation, run_id: str) -> None:
    """Cancel a run, and wait a moment for its end."""
    from time import monotonic, sleep

    _check_id(run_id)
    daemon = invocation.daemon()
    run = daemon.ask("POST", f"/api/runs/{run_id}/cancel", body={}).body
    give_up_at = monotonic() + CANCEL_WITHIN
    while run["outcome"] == "running" and monotonic() < give_up_at:
        sleep(CANCEL_POLL)
        run = daemon.get(f"/api/runs/{run_id}")
    if invocation.is_json:
        json_out(run)
    elif run["outcome"] == "running":
        note(f"run {run_id} was asked to stop and is still running; see: wakeful runs show {run_id}")
    else:
        click.echo(f"run {run_id}: {outcome_of(run)}")


def _replay(invocation: Invocation, run_id: str) -> None:
    _check_id(run_id)
    run = invocation.daemon().ask("POST", f"/api/runs/{run_id}/replay", body={}).body
    if invocation.is_json:
        json_out(run)
    else:
        click.echo(f"run {run['runId']} repeats run {run_id}; see how it ends: wakeful runs show {run['runId']}")


def _show(invocation: Invocation, run_id: str) -> None:
    _check_id(run_id)
    run = invocation.source().get(f"/api/runs/{run_id}")
    if invocation.is_json:
        json_out(run)
        return
    from wakeful.cli.run_details import show_run

    show_run(run)


def _moment_of(source: Source, slug: str, text: str) -> str:
    """The instant given by `--at`; a time of day is read in the schedule's zone."""
    from wakeful.cli.time_options import about

    is_schedule = slug != "heartbeat" and ":" not in slug
    schedule = source.get(schedule_path(slug)).get("schedule") if is_schedule else None
    return about(text, (schedule or {}).get("timezone"), "--at")


def outcome_of(run: Mapping[str, Any]) -> str:
    """`succeeded`, `skipped (paused), 12 times`: the outcome, its reason, and how many instants the row covers."""
    reason = f" ({run['reason']})" if run.get("reason") else ""
    count = f", {run['count']} times" if run.get("count", 1) > 1 else ""
    return f"{run['outcome']}{reason}{count}"


def _runs_path(slug: str | None) -> str:
    if slug is not None and slug.startswith(SLOT):
        from wakeful.cli.slot_details import slot_path

        return slot_path(slug.removeprefix(SLOT), "/runs")
    if slug is not None and slug.startswith(WORKFLOW):
        from wakeful.cli.workflows import workflow_path

        return workflow_path(slug.removeprefix(WORKFLOW), "/runs")
    return "/api/runs" if slug is None else schedule_path(slug, "/runs")


def _list(runs: list[dict[str, Any]]) -> None:
    from wakeful.cli.tables import Column, table

    since = times.now()
    has_nodes = len({run.get("node") for run in runs} - {None}) > 1
    columns = [
        Column("RUN"),
        Column("SLUG", least=16),
        Column("PLANNED", drop=2),
        Column("PASSED"),
        Column("TOOK", drop=1),
        Column("OUTCOME", least=11, is_state=True),
        *([Column("NODE", drop=2)] if has_nodes else []),
        Column("NOTE", least=8, drop=3),
    ]
    rows = []
    for run in runs:
        planned = times.parse(run["plannedAt"])
        took = times.length(times.parse(run.get("startedAt")), times.parse(run.get("endedAt")))
        row = [run["runId"], name_of(run), times.wall(planned), times.relative(planned, since), took]
        node = [run.get("node") or times.NONE] if has_nodes else []
        rows.append([*row, outcome_of(run), *node, _remark(run)])
    if not any(row[-1] for row in rows):
        columns, rows = columns[:-1], [row[:-1] for row in rows]
    table(columns, rows)


def name_of(run: Mapping[str, Any]) -> str:
    """The name of what ran: a schedule, or a workflow's handler."""
    return f"{run['slug']}/{run['handler']}" if run.get("handler") else str(run["slug"])


def _remark(run: Mapping[str, Any]) -> str:
    """Its error, or else the tools that its agent was not allowed to use."""
    if run.get("error"):
        return str(run["error"])
    refused = run.get("refusedTools")
    return f"tools refused: {', '.join(refused)}" if refused else ""


def _log_run(invocation: Invocation, run: Mapping[str, Any]) -> None:
    if invocation.is_json:
        json_line(run)
        return
    at = times.parse(run.get("endedAt") or run.get("startedAt") or run["plannedAt"])
    parts = [times.wall(at), name_of(run), outcome_of(run), f"run {run['runId']}"]
    if _remark(run):
        parts.append(_remark(run))
    click.echo(inert.line("  ".join(parts)))


PrintedRun = tuple[str, int, str, str | None, int]
"""A run, its attempt and its outcome; a row that covers several instants may grow."""

REREAD: Final = 200
"""How many recent runs are read again when the stream reports a gap."""
KNOWN_MAX: Final = 10_000


def _look_back(
    invocation: Invocation, source: Source, slug: str | None, limit: int, known: int = 0
) -> dict[PrintedRun, None]:
    """Print the last runs, oldest first; returns the runs seen so far."""
    runs = source.pages(_runs_path(slug), "runs", limit=max(limit, known)) if limit or known else []
    for run in reversed(runs[:limit]):
        _log_run(invocation, run)
    return {_told(run): None for run in reversed(runs)}


def _told(run: Mapping[str, Any]) -> PrintedRun:
    return run["runId"], run["attempt"], run["outcome"], run.get("reason"), run.get("count") or 1


def _follow(
    invocation: Invocation, daemon: Daemon, events: Iterator[Any], slug: str | None, printed: dict[PrintedRun, None]
) -> None:
    for event in events:
        if event.get("what") == "reset":
            _reread(invocation, daemon, slug, printed)
        # Rungs and other small steps have no outcome; they are for the page.
        elif event.get("outcome") and (slug is None or event.get("slug") == slug):
            _log_new(invocation, event, printed)


def _reread(invocation: Invocation, daemon: Daemon, slug: str | None, printed: dict[PrintedRun, None]) -> None:
    """The stream has a gap: read the missing runs from the ledger."""
    runs = daemon.pages(_runs_path(slug), "runs", limit=REREAD)
    news = [_log_new(invocation, run, printed) for run in reversed(runs)]
    if all(news) and len(news) == REREAD:
        note("wakeful: some runs are missing here; list them with: wakeful runs")


def _log_new(invocation: Invocation, run: Mapping[str, Any], printed: dict[PrintedRun, None]) -> bool:
    """Print the run unless it was printed already."""
    mark = _told(run)
    if mark in printed:
        return False
    printed[mark] = None
    if len(printed) > KNOWN_MAX:
        del printed[next(iter(printed))]
    _log_run(invocation, run)
    return True


def _record(slug: str, answer: Mapping[str, Any]) -> None:
    from wakeful.cli.tables import facts

    since = times.now()
    counts = answer.get("counts", {})
    listed = ", ".join(f"{counts[name]} {name}" for name in OUTCOMES if counts.get(name)) or "none"
    rate = answer.get("successRate")
    streak = answer.get("streak") or 0
    start = times.parse(answer.get("since"))
    facts(
        [
            ("schedule", slug),
            ("since", times.wall(start) if start else "all history"),
            ("runs", listed),
            ("success rate", times.NONE if rate is None else f"{rate:.1%}"),
            ("took", _took(answer)),
            ("in a row", f"{max(streak, 0)} succeeded" if streak >= 0 else f"{-streak} failed"),
            ("tokens", f"{answer['tokens']:,}" if answer.get("tokens") is not None else "unknown"),
            ("cost", f"${answer['cost']:.4f}" if answer.get("cost") is not None else "unknown"),
            ("last", times.when(answer.get("lastRun"), since)),
            ("next", times.when(answer.get("nextRun"), since)),
        ]
    )


def _took(answer: Mapping[str, Any]) -> str:
    if answer.get("p50DurationMs") is None:
        return times.NONE
    half, most = times.milliseconds(answer["p50DurationMs"]), times.milliseconds(answer.get("p95DurationMs"))
    return f"{half} (median), {most} (95th percentile)"
