"""List the agents, show one, or test one with a real prompt."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import quote

import click

from wakeful.cli import times
from wakeful.cli.client import Daemon
from wakeful.cli.errors import FAILED, Ended, Misused
from wakeful.cli.invocation import Invocation, command, end
from wakeful.cli.render import json_out, note, say

RUNGS: Final = ("claimed", "sent", "accepted", "started", "finished")
OPEN: Final = ("running", "waiting")
LOOK_EVERY: Final = 0.2
_SAYS: Final = {
    "claimed": "the daemon accepted the run",
    "sent": "the prompt is being sent",
    "accepted": "the agent accepted the prompt",
    "started": "the agent is working",
    "finished": "the agent replied",
}


@command("agents")
@click.argument("words", nargs=-1, metavar="[NAME | test NAME | connect NAME]")
@click.option("--prompt", metavar="TEXT", help="With test: the prompt to send; default: a short test prompt.")
@click.option("--as", "acts_as", metavar="AGENT", help="With connect: the agent that the program acts as.")
@click.option("--print", "is_printed", is_flag=True, help="With connect: only print the entry.")
def agents_command(
    invocation: Invocation, words: tuple[str, ...], prompt: str | None, acts_as: str | None, is_printed: bool
) -> None:
    """List the agents, show one, test one with a real prompt, or connect a program.

    `test NAME` sends a prompt through the daemon and prints each step as the agent reaches it. Exit code 0 if the agent
    replied, 1 if not. `connect NAME` (claude, codex, gemini, opencode, or an agent that runs one of them) registers
    `wakeful mcp` in the program's own settings.
    """
    match words:
        case ("connect", name):
            from wakeful.cli.agent_connect import connect

            connect(invocation, name, acts_as, is_printed=is_printed)
            return
        case ("test", name):
            _test(invocation, name, prompt)
            return
        case ("test",) | ("connect",):
            raise click.UsageError(f"name the agent: wakeful agents {words[0]} NAME")
        case (_, _, *_):
            raise click.UsageError("write: wakeful agents, or wakeful agents NAME, test NAME or connect NAME")
    if acts_as is not None or is_printed:
        raise click.UsageError("--as and --print only work with: wakeful agents connect NAME")
    if prompt is not None:
        raise click.UsageError("--prompt only works with: wakeful agents test NAME")
    agents = invocation.daemon().get("/api/agents")["agents"]
    if words:
        _show(invocation, _named(agents, words[0]))
    elif invocation.is_json:
        json_out({"agents": agents})
    else:
        _list(agents)


def _list(agents: list[dict[str, Any]]) -> None:
    from wakeful.cli.tables import Column, table

    since = times.now()
    columns = [
        Column("NAME", least=8),
        Column("ADAPTER"),
        Column("PROGRAM", least=10, drop=2),
        Column("VERSION", drop=1),
        Column("LAST TURN"),
        Column("OUTCOME", is_state=True),
        Column("SESSIONS", drop=3),
    ]
    table(columns, [_row(agent, since) for agent in agents])
    for agent in agents:
        if agent["problem"]:
            note(f"  {agent['name']}: {agent['problem']}")
    if all(agent["adapter"] == "echo" for agent in agents):
        note("  only the echo agent is configured; wakeful init finds installed agents")


def _row(agent: Mapping[str, Any], since: Any) -> list[str]:
    last = agent["lastTurn"]
    return [
        agent["name"],
        agent["adapter"],
        _program(agent),
        agent["version"] or times.NONE,
        times.NONE if last is None else times.relative(times.parse(last["at"]), since),
        times.NONE if last is None else last["outcome"],
        str(agent["sessions"]),
    ]


def _show(invocation: Invocation, agent: Mapping[str, Any]) -> None:
    if invocation.is_json:
        json_out(agent)
        return
    from wakeful.cli.tables import facts

    last, since = agent["lastTurn"], times.now()
    pairs: list[tuple[str, object]] = [
        ("agent", agent["name"]),
        ("adapter", agent["adapter"]),
        ("program", _program(agent)),
        ("version", agent["version"] or times.NONE),
        ("proves", agent["proves"]),
        ("sessions", agent["sessions"]),
    ]
    if last is None:
        pairs.append(("last turn", "none yet"))
    else:
        at = times.relative(times.parse(last["at"]), since)
        pairs.append(("last turn", f"{last['outcome']}, {at}, run {last['runId']} of {last['slug']}"))
        if last["error"]:
            pairs.append(("error", last["error"]))
    if agent["problem"]:
        pairs.append(("problem", agent["problem"]))
    pairs.append(("try it", f"wakeful agents test {agent['name']}"))
    facts(pairs)


def _program(agent: Mapping[str, Any]) -> str:
    if agent["program"] is None:
        return times.NONE
    return str(agent["program"]) if agent["found"] else f"{agent['program']} (not found)"


def _named(agents: list[dict[str, Any]], name: str) -> dict[str, Any]:
    for agent in agents:
        if agent["name"] == name:
            return agent
    known = ", ".join(agent["name"] for agent in agents)
    raise Ended(f"there is no agent {name!r}", hint=f"configured: {known}")


def _test(invocation: Invocation, name: str, prompt: str | None) -> None:
    daemon = invocation.daemon()
    body = {} if prompt is None else {"prompt": prompt}
    try:
        run_id = daemon.ask("POST", f"/api/agents/{quote(name, safe='')}/test", body=body).body["runId"]
    except Misused as refused:  # the agent is unusable: that is the test result, not a usage error
        raise Ended(str(refused), refused.faults, hint=refused.hint) from refused
    if not invocation.is_json:
        say(f"testing {name}, run {run_id}")
    run: dict[str, Any] = {}
    reached: set[str] = set()
    for run in _looks(daemon, run_id):
        if not invocation.is_json:
            _tell_progress(run, reached)
    if invocation.is_json:
        json_out(run)
    else:
        _tell_end(name, run)
    if run["outcome"] != "succeeded":
        end(FAILED)


def _looks(daemon: Daemon, run_id: str) -> Iterator[dict[str, Any]]:
    """Poll the run until it has ended; the run's own timeout bounds this."""
    while True:
        run: dict[str, Any] = daemon.get(f"/api/runs/{run_id}")
        yield run
        if run["outcome"] not in OPEN:
            return
        time.sleep(LOOK_EVERY)


def _tell_progress(run: Mapping[str, Any], printed: set[str]) -> None:
    """Print what is new: what the run waits for, and each step it has reached since the last poll."""
    if run["outcome"] == "waiting" and run.get("reason") and "waiting" not in printed:
        printed.add("waiting")
        say(f"  waiting   {run['reason']}")
    begun = times.parse(run.get("startedAt"))
    for rung, at in _rungs(run):
        if rung not in printed:
            printed.add(rung)
            say(f"  {rung:<9} {_SAYS[rung]} (after {times.length(begun, times.parse(at))})")


def _rungs(run: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The steps the run has reached, in order, each with its time."""
    times_of = dict(run.get("ladder") or {})
    if run.get("startedAt"):
        times_of.setdefault("claimed", run["startedAt"])
    if run.get("rung") and run.get("endedAt"):
        times_of.setdefault(run["rung"], run["endedAt"])
    for rung in RUNGS:
        if rung in times_of:
            yield rung, times_of[rung]


def _tell_end(name: str, run: Mapping[str, Any]) -> None:
    took = times.length(times.parse(run.get("startedAt")), times.parse(run.get("endedAt")))
    reason = f" ({run['reason']})" if run.get("reason") else ""
    say(f"{name} {run['outcome']}{reason}{'' if took == times.NONE else f', took {took}'}")
    if run.get("error"):
        note(f"  {run['error']}")
    for text in (run.get("reply"), run.get("output")):
        if text:
            say(str(text).rstrip("\n"))
