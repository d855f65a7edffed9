"""Runs a command-line agent headless: one process, stdout and stderr read separately, both bounded."""

import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

from wakeful.core.run.results import Failed
from wakeful.core.schedule.actions import Command
from wakeful.core.time.instants import Duration
from wakeful.integrations.actions import gate
from wakeful.integrations.actions.child import CannotStart, Children, Spawn
from wakeful.integrations.actions.environment import environment, withheld, withheld_note
from wakeful.integrations.actions.program import Unstartable, check_command
from wakeful.integrations.actions.sandbox import Sandbox, sandboxed
from wakeful.integrations.actions.sessions import END_GRACE
from wakeful.integrations.agents.arrivals import ArrivalMarks
from wakeful.integrations.agents.presets.preset import Launch, Printed
from wakeful.integrations.system.text import HeadTail, cap, fit
from wakeful.integrations.system.threads import in_thread
from wakeful.ports.action import Fire, Ladder
from wakeful.ports.clock import Clock

STDOUT_MAX: Final = 8 * 1024 * 1024
STDERR_MAX: Final = 256 * 1024
KEPT_MAX: Final = 16 * 1024
"""How much of each stream is kept for display on a failed run."""


class Headless:
    """Starts programs as the command action does: recorded before they run, ended with all their children."""

    def __init__(self, clock: Clock, *, grace: Duration = END_GRACE) -> None:
        self._clock = clock
        self._children = Children(grace=grace)

    async def run(
        self,
        launch: Launch,
        cwd: str | None,
        env: Mapping[str, str],
        fire: Fire,
        ladder: Ladder,
        *,
        pass_env: Sequence[str] = (),
        sandbox: Sandbox | None = None,
    ) -> Printed | Failed:
        """Its output; `Failed` if it could not be started."""
        command = Command(launch.argv, cwd, {**env, **launch.env})
        surroundings = environment(fire, command.env, pass_env)
        try:
            folder = check_command(command, surroundings)
            words = launch.argv
            if sandbox is not None:  # in a thread: it may have to be tried first
                enclose = partial(_enclosed, launch.argv, sandbox, folder, surroundings)
                words = await in_thread(enclose, name="sandbox")
        except Unstartable as error:
            return Failed(str(error), permanent=True)
        await ladder.climb("sent")
        stdout, stderr = _Stream(STDOUT_MAX, self._clock), _Stream(STDERR_MAX, self._clock)
        stdin = gate.OPEN + (launch.stdin or "").encode("utf-8", "replace")
        argv = gate.gated(words, surroundings, has_stdin=launch.stdin is not None)
        spawn = Spawn(argv, surroundings, stdin, folder, merges_stderr=False, stderr_sink=stderr.feed)
        try:
            ended = await self._children.run(spawn, ladder, stdout.feed)
        except CannotStart as error:
            return Failed(str(error), permanent=True)
        return Printed(
            stdout.kept.text(), stderr.kept.text(), ended.code, stdout.marks.arrivals(), stderr.marks.arrivals()
        )

    async def close(self) -> None:
        await self._children.close()


class _Stream:
    """What a program prints on one stream, and when."""

    __slots__ = ("kept", "marks")

    def __init__(self, limit: int, clock: Clock) -> None:
        self.kept = HeadTail(limit)
        self.marks = ArrivalMarks(clock)

    def feed(self, data: bytes) -> None:
        self.kept.feed(data)
        self.marks.feed(data)


def _enclosed(
    argv: tuple[str, ...], sandbox: Sandbox | None, cwd: str | None, env: Mapping[str, str]
) -> tuple[str, ...]:
    """The command line, in its sandbox if it has one."""
    return argv if sandbox is None else sandboxed(argv, sandbox, cwd or sandbox.hidden, env)


def wrong_launch(launch: Launch, cwd: str | None, env: Mapping[str, str], sandbox: Sandbox | None = None) -> str | None:
    """Why this command line cannot be started here, with the PATH that was searched; None if it can."""
    given = {**env, **launch.env}
    surroundings = {**os.environ, **given}
    try:
        folder = check_command(Command(launch.argv, cwd, given), surroundings)
        _enclosed(launch.argv, sandbox, folder, surroundings)
    except Unstartable as error:
        return str(error)
    return None


def with_withheld(output: str | None, fire: Fire, pass_env: Sequence[str], env: Mapping[str, str]) -> str | None:
    """The output of a failed turn, with a note on the withheld variables."""
    note = withheld_note(withheld(fire.withholds, pass_env, env), "pass_env of this agent")
    return f"{output or ''}{note}".strip("\n") if note else output


def for_people(printed: Printed) -> str | None:
    """The end of both streams, for display."""
    parts = [
        f"[{name}]\n{cap(fit(text.strip()), KEPT_MAX)}"
        for name, text in (("stdout", printed.stdout), ("stderr", printed.stderr))
        if text.strip()
    ]
    return "\n".join(parts) or None
