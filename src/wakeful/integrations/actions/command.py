"""The command action: runs a program, keeps its output, and ends its whole session on timeout."""

import os
import signal
from collections import ChainMap
from collections.abc import Sequence
from typing import Final

from wakeful.core.run.results import Done, Failed, Result
from wakeful.core.run.runs import RungName
from wakeful.core.schedule.actions import ActionSpec, Command
from wakeful.core.time.instants import Duration
from wakeful.integrations.actions import gate
from wakeful.integrations.actions.child import CannotStart, Children, Exit, Spawn
from wakeful.integrations.actions.environment import environment, withheld, withheld_note
from wakeful.integrations.actions.program import Unstartable, check_command
from wakeful.integrations.actions.sessions import END_GRACE
from wakeful.integrations.actions.spec import expect
from wakeful.integrations.system.text import HeadTail, last_line
from wakeful.ports.action import Fire, Ladder

_LEFT_BEHIND: Final = "\n[a leftover process could not be stopped]"
_STATUS_LOST: Final = (
    "it ended, but its exit status was collected by another part of this program; "
    "do not ignore SIGCHLD or wait for all children in a program that embeds Wakeful"
)


class CommandAction:
    """Performs `Command`: never through a shell, in its own session, recorded before it runs."""

    is_local = False

    def __init__(self, *, grace: Duration = END_GRACE) -> None:
        self._children = Children(grace=grace)

    def proves(self, spec: ActionSpec) -> RungName:
        return "finished"

    def check(self, spec: ActionSpec) -> str | None:
        command = expect(spec, Command)
        try:
            check_command(command, ChainMap(dict(command.env), os.environ))
        except Unstartable as error:
            return str(error)
        return None

    async def perform(self, spec: ActionSpec, fire: Fire, ladder: Ladder) -> Result:
        command = expect(spec, Command)
        env = environment(fire, command.env, command.pass_env)
        try:
            cwd = check_command(command, env)
        except Unstartable as error:
            return Failed(str(error), permanent=True)
        await ladder.climb("sent")
        output, errors = HeadTail(command.output_max), HeadTail(command.output_max)
        try:
            ending = await self._children.run(_spawn(command, env, cwd, errors), ladder, output.feed)
        except CannotStart as error:
            return Failed(str(error), permanent=True)
        return _result(ending, output.text(), errors.text(), withheld(fire.withholds, command.pass_env, command.env))

    async def close(self) -> None:
        await self._children.close()


def _spawn(command: Command, env: dict[str, str], cwd: str | None, errors: HeadTail) -> Spawn:
    stdin = gate.OPEN + (command.stdin or "").encode("utf-8", "replace")
    argv = gate.gated(command.argv, env, has_stdin=command.stdin is not None)
    return Spawn(argv, env, stdin, cwd, merges_stderr=False, stderr_sink=errors.feed)


def _result(ending: Exit, output: str, stderr: str, withheld_names: Sequence[str]) -> Result:
    shown, complaint = output if ending.is_clean else output + _LEFT_BEHIND, stderr or None
    if ending.code == 0:
        return Done(output=shown, stderr=complaint)
    noted = shown + withheld_note(withheld_names, "passEnv")
    return Failed(_error(ending.code, output, stderr), output=noted, stderr=complaint)


def _error(code: int | None, output: str, stderr: str) -> str:
    if code is None:
        return _STATUS_LOST
    said = last_line(stderr) or last_line(output)
    ended = f"killed by {_signal_name(-code)}" if code < 0 else f"exited with {code}"
    return f"{ended}: {said}" if said else ended


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # real-time signals have no name
        return f"signal {number}"
