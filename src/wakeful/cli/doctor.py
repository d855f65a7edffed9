"""Diagnose the home, the settings, the database, the daemon, the clock and the schedules."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import click

from wakeful.cli import times
from wakeful.cli.agent_states import HOW_TO_ADD, NO_AGENT, AgentState, agents_of_daemon, agents_of_settings
from wakeful.cli.errors import FAILED, Ended, Misused, start_command
from wakeful.cli.home import database_of, running
from wakeful.cli.invocation import Invocation, command, end
from wakeful.cli.render import json_out, note, plural

if TYPE_CHECKING:
    from wakeful.cli.client import Daemon

ROOM_MIN: Final = 100 * 1024 * 1024
OTHERS: Final = 0o077
NAMED_MAX: Final = 5
TROUBLED_MAX: Final = 1_000


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check."""

    what: str
    state: Literal["ok", "warning", "wrong"]
    words: str
    cure: str | None = None


@command("doctor")
@click.option("--drill", is_flag=True, help="Inject faults into test daemons; count lost and duplicate runs.")
@click.option("--minutes", type=click.FloatRange(0.15, 60), help="Total duration of the drill; default 2.", metavar="N")
@click.option(
    "--store", metavar="URL", help="Store to use for the drill, e.g. postgresql://…; default: the same kind as yours."
)
def doctor_command(invocation: Invocation, drill: bool, minutes: float | None, store: str | None) -> None:
    """Check for problems and show how to fix them; also works without a daemon.

    The exit code is 1 if something is wrong; warnings do not count.

    With --drill, it starts separate test daemons next to the home folder (or in a separate schema), kills, freezes and
    disconnects them, and checks that each planned time ran once. Your data is not touched, and nothing is left behind.
    The exit code is 0 only if the drill passed.
    """
    if drill:
        from wakeful.cli.drill import run_drill

        return run_drill(invocation, 2.0 if minutes is None else minutes, store)
    if minutes is not None or store is not None:
        raise Misused("--minutes and --store need --drill", hint="add --drill")
    findings = [finding for look in LOOKS for finding in look(invocation)]
    is_well = all(finding.state != "wrong" for finding in findings)
    if invocation.is_json:
        json_out({"ok": is_well, "findings": [asdict(finding) for finding in findings]})
    else:
        _tell(findings)
    if not is_well:
        end(FAILED)
    return None


def _tell(findings: list[Finding]) -> None:
    from wakeful.cli.tables import paragraph

    for finding in findings:
        cure = f"\n{finding.cure}" if finding.cure else ""
        paragraph(f"{finding.what}: {finding.words}{cure}", label=f"{finding.state:<8}")
    wrong = sum(finding.state == "wrong" for finding in findings)
    warnings = sum(finding.state == "warning" for finding in findings)
    note(f"{wrong} wrong, {warnings} warning{'s' * (warnings != 1)}, {len(findings) - wrong - warnings} ok")


def _home(invocation: Invocation) -> Iterator[Finding]:
    home = invocation.home
    if not home.exists():
        yield Finding("home", "warning", f"{home} does not exist yet", f"create it: {start_command(home)}")
        return
    if not home.is_dir() or not os.access(home, os.R_OK | os.W_OK | os.X_OK):
        yield Finding("home", "wrong", f"{home} is not a writable folder", "make it writable, or choose another --home")
        return
    if home.stat().st_mode & OTHERS:
        yield Finding("home", "warning", f"other users of this machine can read {home}", f"run: chmod 700 {home}")
    else:
        yield Finding("home", "ok", f"{home}, readable only by you")
    free = shutil.disk_usage(home).free
    if free < ROOM_MIN:
        yield Finding(
            "disk",
            "wrong",
            f"only {free // 1_000_000} MB are free",
            "free some space: without it nothing can be recorded",
        )
    else:
        yield Finding("disk", "ok", f"{free // 1_000_000:,} MB free")


def _settings(invocation: Invocation) -> Iterator[Finding]:
    from wakeful.config import SettingsRefused, load

    file = invocation.home / "wakeful.toml"
    try:
        loaded = load(invocation.home)
    except SettingsRefused as refused:
        for error in refused.errors:
            yield Finding("settings", "wrong", f"{file.name}, {error}", f"correct it, then: wakeful check {file}")
        return
    for warning in loaded.warnings:
        yield Finding("settings", "warning", f"{file.name}, {warning}")
    if loaded.settings.server.auth == "none":
        words = 'auth = "none": every user of this machine can use the daemon, and so run programs as you'
        yield Finding("access", "warning", words, f"remove auth from [server] in {file}, then restart the daemon")
    if not _is_held(invocation.home):  # a running daemon reports which modules it could not load
        yield from _modules(loaded.settings.workflows.modules, invocation.home)
        yield from _plugins(loaded.settings.plugins)
    if not loaded.warnings:
        yield Finding("settings", "ok", f"{file.name} is valid" if file.exists() else "defaults, no wakeful.toml")


def _is_held(home: Path) -> bool:
    """Whether a daemon holds the home, even one that is still starting."""
    try:
        return running(home) is not None
    except Ended:
        return True


def _plugins(packages: Sequence[str]) -> Iterator[Finding]:
    if not packages:
        return
    from wakeful.app.findings import plugins
    from wakeful.integrations.plugins.loading import Plugins

    tried = Plugins(lambda: 0)
    tried.name(packages)
    for finding in plugins(tried.troubles()):
        yield Finding(finding.name, "warning", finding.sentence, finding.cure)


def _modules(modules: Sequence[str], home: Path) -> Iterator[Finding]:
    from wakeful.features.workflows.modules import try_out

    for fault in try_out(modules, home):
        cure = f"correct [workflows] modules or the module; it is searched for on Python's path, and then in {home}"
        yield Finding("workflows", "warning", f"module {fault.module} cannot be loaded: {fault.error}", cure)


def _database(invocation: Invocation) -> Iterator[Finding]:
    try:
        path = database_of(invocation.home)
    except Ended as ended:
        yield Finding("database", "ok", str(ended))
        return
    if not path.exists():
        yield Finding(
            "database", "warning", f"{path} does not exist yet", f"create it: {start_command(invocation.home)}"
        )
        return
    faults = _faults_of(path)
    if faults:
        cure = "stop the daemon, then restore a copy made by `wakeful backup`: wakeful restore FILE"
        yield Finding("database", "wrong", f"{path}: {faults[0]}", cure)
    else:
        yield Finding("database", "ok", f"{path}, {path.stat().st_size:,} bytes, intact")


def _faults_of(path: Path) -> list[str]:
    from wakeful.stores.sqlite.files import faults_in, inspect
    from wakeful.stores.sqlite.migrate import DatabaseRefused

    try:
        inspect(path)
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
            return faults_in(connection)
    except (DatabaseRefused, sqlite3.Error, OSError) as error:
        return [str(error)]


def _histories(invocation: Invocation) -> Iterator[Finding]:
    """Whether replies of session agents can be read, as recorded by their first turn."""
    from wakeful.config import SettingsRefused, load
    from wakeful.config.agents import SessionsAgent
    from wakeful.integrations.agents.session_records import FOLDER, read_records

    try:
        agents = load(invocation.home).settings.agents
    except SettingsRefused:
        return
    for name, agent in agents.items():
        finding = read_records(invocation.home / FOLDER / f"{name}.json")[1]
        if not isinstance(agent, SessionsAgent) or finding is None:
            continue
        if finding.is_readable:
            yield Finding("history", "ok", f"{name}: session history is read from {finding.words}")
            continue
        words = f"{name}: session history cannot be read: {finding.words}"
        runs = "runs that go idle succeed without a reply" if agent.proves == "idle" else "its runs are unconfirmed"
        cure = f"set history_file or history_path under [agents.{name}], or let the agent post receipts"
        yield Finding("history", "warning", f"{words}; {runs}", cure)


def _zone(invocation: Invocation) -> Iterator[Finding]:
    name, _ = times.user_zone()
    now = times.now()
    yield Finding("zone", "ok", f"your zone is {name}, and it is {times.wall(now)}")
    if now.year < 2024:
        yield Finding(
            "clock", "wrong", f"this machine's clock says {now.year}", "set the clock; schedules do not fire until then"
        )


def _daemon(invocation: Invocation) -> Iterator[Finding]:
    from wakeful.cli.client import Daemon
    from wakeful.cli.health import findings_of

    try:
        process = running(invocation.home)
    except Ended as ended:
        yield Finding("daemon", "warning", str(ended), ended.hint)
        return
    if process is None:
        words = "not running: no schedule fires"
        yield Finding("daemon", "warning", words, f"start one: {start_command(invocation.home)}")
        yield from _agents(agents_of_settings(invocation.home))
        return
    daemon = Daemon(process, invocation.home)
    try:
        yield Finding("daemon", "ok", f"process {process.pid} responds at {process.url}")
        for state, what, words, cure in findings_of(daemon):
            yield Finding(what, state, words, cure)
        yield _nodes(daemon)
        yield from _settings_of_daemon(daemon, invocation.home)
        yield from _agents(agents_of_daemon(daemon))
        yield from _zone_of_daemon(daemon)
        yield from _schedules(daemon)
        yield from _slots(daemon)
    except Ended as ended:
        yield Finding("daemon", "wrong", str(ended), ended.hint)


def _nodes(daemon: Daemon) -> Finding:
    """The nodes that tick on this store: this daemon, and those of other machines."""
    nodes = daemon.get("/api/nodes")["nodes"]
    alive = [node for node in nodes if node["isAlive"]]
    if not alive:
        return Finding(
            "nodes", "wrong", "no node is ticking: no schedule fires", "check server.log, then restart the daemon"
        )
    named = [f"process {node['pid']} on {node['host']}{_labels(node)}" for node in alive[:NAMED_MAX]]
    more = f" and {len(alive) - NAMED_MAX} more" if len(alive) > NAMED_MAX else ""
    return Finding("nodes", "ok", f"{len(alive)} ticking: {', '.join(named)}{more}")


def _labels(node: Mapping[str, Any]) -> str:
    return f" ({', '.join(node['labels'])})" if node["labels"] else ""


def _slots(daemon: Daemon) -> Iterator[Finding]:
    """Quota slots with problems, each with its cause; no finding if there are no slots."""
    slots = daemon.get("/api/slots")["slots"]
    troubled = [slot for slot in slots if slot["statusReason"]]
    for slot in troubled:
        is_over = slot["disabled"] or slot["wakeDisabled"] or slot["status"] == "invalid"
        yield Finding("slots", "wrong" if is_over else "warning", slot["statusReason"], slot["cure"])
    if slots and not troubled:
        yield Finding("slots", "ok", f"{len(slots)}, no problems")


def _agents(states: list[AgentState]) -> Iterator[Finding]:
    """Agents whose program is missing, and a home with only the echo agent."""
    for state in states:
        if state.problem is not None:
            yield Finding("agents", "wrong", f"{state.name}: {state.problem}")
    if all(state.adapter == "echo" for state in states):
        yield Finding("agents", "warning", NO_AGENT, HOW_TO_ADD)
    elif all(state.problem is None for state in states):
        yield Finding("agents", "ok", ", ".join(f"{state.name} ({state.adapter})" for state in states[:NAMED_MAX]))


def _settings_of_daemon(daemon: Daemon, home: Path) -> Iterator[Finding]:
    """Settings in the file that are not in effect in the daemon, with the reason."""
    status = daemon.get("/api/config")
    if status["refused"]:
        count = plural(len(status["refused"]), "error")
        words = f"the daemon keeps the previous settings because of {count} in wakeful.toml"
        yield Finding("settings", "wrong", words, f"correct them, then: wakeful check {home / 'wakeful.toml'}")
    for setting in status["restart"]:
        words = f"{setting['name']} is {setting['written']} in the file, but the daemon still uses {setting['now']}"
        yield Finding("settings", "warning", words, f"restart it: wakeful down, then {start_command(home)}")
    for failure in status["failed"]:
        yield Finding("settings", "wrong", f"not applied: {failure}", "check server.log, then restart the daemon")


_UTC_NAMES: Final = frozenset({"UTC", "Etc/UTC", "Etc/UCT", "UCT", "Universal", "Etc/Universal", "Zulu", "Etc/Zulu"})


def _zone_of_daemon(daemon: Daemon) -> Iterator[Finding]:
    """Warn if the daemon's default zone is not the user's: `09:00` then means another time. Uses a dry run."""
    probe = {"schedule": {"type": "times", "times": ["09:00"]}, "command": {"argv": ["true"]}}
    view = daemon.ask("PUT", "/api/schedule/doctor", query={"dryRun": True}, body=probe).body
    theirs, ours = view["schedule"]["timezone"], times.user_zone()[0]
    if theirs != ours and not {theirs, ours} <= _UTC_NAMES:
        words = f"schedules without a zone use {theirs}, and yours is {ours}"
        yield Finding("zone", "warning", words, "give --tz, or write timezone under [schedules] in wakeful.toml")


def _schedules(daemon: Daemon) -> Iterator[Finding]:
    """Schedules whose health is failing or late, each with its cause."""
    schedules = daemon.pages("/api/schedule", "schedules", troubled=True, limit=TROUBLED_MAX)
    invalid = [schedule for schedule in schedules if schedule["status"] == "invalid"]
    disabled = [schedule for schedule in schedules if schedule["status"] == "disabled"]
    failing = [
        schedule for schedule in schedules if schedule["health"] == "failing" and schedule not in [*invalid, *disabled]
    ]
    late = [schedule for schedule in schedules if schedule["health"] == "late"]
    if invalid:
        yield Finding("schedules", "wrong", f"invalid: {_named(invalid)}", "correct them: wakeful edit SLUG")
    if disabled:
        words = f"disabled after repeated errors: {_named(disabled)}"
        yield Finding("schedules", "warning", words, "fix the cause, then: wakeful resume SLUG")
    for schedule in failing[:NAMED_MAX]:
        yield Finding("schedules", "warning", _failure(schedule), f"see why: wakeful why {schedule['slug']}")
    if len(failing) > NAMED_MAX:
        words = f"{len(failing) - NAMED_MAX} more are failing: {_named(failing[NAMED_MAX:])}"
        yield Finding("schedules", "warning", words, "list them: wakeful ls --health failing")
    if late:
        yield Finding("schedules", "warning", f"late: {_named(late)}", "see why: wakeful why SLUG")
    if not schedules:
        yield Finding("schedules", "ok", "none is failing or late")


def _failure(schedule: dict[str, Any]) -> str:
    if schedule.get("lastOutcome") is None:  # it failed without a run
        return f"{schedule['slug']} did not run at its planned time"
    return f"{schedule['slug']} {schedule['lastOutcome']}: {schedule.get('lastError') or 'no error text'}"


def _named(schedules: list[dict[str, Any]]) -> str:
    slugs = [str(schedule["slug"]) for schedule in schedules]
    more = f" and {len(slugs) - NAMED_MAX} more" if len(slugs) > NAMED_MAX else ""
    return ", ".join(slugs[:NAMED_MAX]) + more


LOOKS: Final[tuple[Callable[[Invocation], Iterator[Finding]], ...]] = (
    _home,
    _settings,
    _histories,
    _database,
    _zone,
    _daemon,
)
