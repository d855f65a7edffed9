"""A schedule's `check`: a command or a request that decides whether the agent is prompted at all.

Exit code 0, or status 2xx, with output: there is something to do, and the output is given to the agent. Without output
(or 204): there is nothing to do. Anything else is a failed check, and `onError` decides.
"""

from dataclasses import dataclass
from typing import Annotated, Final, Literal, TypeAlias

from wakeful.core.description import Field, described
from wakeful.core.fields import Fields
from wakeful.core.kinds import choice, nested
from wakeful.core.schedule.actions import OBJECTS, Command, Http
from wakeful.core.time.instants import MINUTE, Duration

OnError: TypeAlias = Literal["wake", "skip"]

CHECK_TIMEOUT: Final[Duration] = MINUTE
CHECK_OUTPUT_MAX: Final = 16 * 1024
"""In bytes; the rest is cut off."""

NOTHING_TO_DO: Final = "nothing to do"
"""The reason of an instant whose check found nothing."""

CHECK_FAILED: Final = "check failed"
"""The reason of an instant whose check failed, with `onError: skip`."""

CHECKED: Final = "check"
"""The reason of a run between its check and its turn."""


@dataclass(frozen=True, slots=True)
class PreCheck:
    """A command or a request that runs before the prompt; if it has no output, the agent is not prompted."""

    command: Annotated[
        Command | None, Field(nested(OBJECTS["command"]), "a program; exit code 0 is required", "Check command")
    ] = None
    http: Annotated[
        Http | None, Field(nested(OBJECTS["http"]), "a request; a status of 2xx is required", "Check request")
    ] = None
    on_error: Annotated[
        OnError, Field(choice(OnError), "what happens if the check itself fails", "If the check fails")
    ] = "wake"

    @property
    def action(self) -> Command | Http:
        action = self.command or self.http
        assert action is not None  # noqa: S101 - one of the two is required
        return action


def _one_of_both(fields: Fields, check: PreCheck) -> None:
    if (check.command is None) == (check.http is None):
        cure = 'write for example {"command": {"argv": ["./new-mail"]}}'
        fields.fail("command", f"exactly one of command and http is required; {cure}")


PRE_CHECK: Final = described(PreCheck, name="Check", says=PreCheck.__doc__ or "", check=_one_of_both)
PRE_CHECK_KIND: Final = nested(PRE_CHECK)


@dataclass(frozen=True, slots=True)
class CheckSpec:
    """What is performed before the turn."""

    check: PreCheck


@dataclass(frozen=True, slots=True)
class Found:
    """There is something to do."""

    output: str


@dataclass(frozen=True, slots=True)
class NothingFound:
    """There is nothing to do."""


@dataclass(frozen=True, slots=True)
class CheckFailed:
    """The check itself failed."""

    error: str


def with_output(prompt: str, output: str) -> str:
    """The prompt with what the check found."""
    return f"{prompt}\n\n[check]\n{output}"
