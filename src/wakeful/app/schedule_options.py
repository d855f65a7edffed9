"""The keywords with which a Python program describes a schedule.

They are fields of a definition in snake_case, so a field has its name, its limits and its refusals from
`core.schedule.definition`. The types are for type checkers: a misspelt keyword and a wrong type are found before the
program runs. `tests/embedding/test_options.py` compares them with the fields.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from difflib import get_close_matches
from typing import Any, Final, Literal, TypeAlias, TypedDict

from wakeful.app.timing_forms import GivenTiming
from wakeful.core.errors import FieldError, Invalid
from wakeful.core.schedule.definition import OPTIONS
from wakeful.core.schedule.policies import CatchUp, OnCrash, Overlap

Length: TypeAlias = str | timedelta
Object: TypeAlias = Mapping[str, Any]
Raised: TypeAlias = type[BaseException] | str
"""An exception, or its name."""

ACTIONS: Final = ("call", "command", "http", "prompt", "event", "dispatch")


class ScheduleOptions(TypedDict, total=False):
    """What `job`, `add` and `update` take besides timing and action; None is the default."""

    enabled: bool | None
    deliver: Object | Sequence[Object] | None
    catch_up: CatchUp | None
    catch_up_max: int | None
    max_lateness: Length | None
    overlap: Overlap | None
    timeout: Length | None
    on_crash: OnCrash | None
    max_consecutive_errors: int | None
    active_hours: Object | None
    stagger: Length | None
    success: Literal["accepted", "started", "finished"] | None
    slot: str | None
    lane: str | None
    alert: Object | Literal[False] | None
    expires_at: str | datetime | None
    retry: Object | None
    budget: Object | None
    check: Object | None
    exclude: Object | None
    run_on: str | Sequence[str] | None
    # The short form of `retry`.
    retries: int | None
    retry_delay: Length | None
    retry_on: Raised | Sequence[Raised] | None
    give_up_on: Raised | Sequence[Raised] | None


class AddOptions(ScheduleOptions, total=False):
    """What `add` and `New` take: at most one action, and the options."""

    call: Callable[..., Any] | str | None
    args: Mapping[str, Any] | None
    isolate: Literal["process"] | None
    command: Sequence[str] | Object | None
    http: str | Object | None
    prompt: str | None
    agent: str
    session_config: Object | None
    event: str | Object | None
    dispatch: Object | None


class JobOptions(ScheduleOptions, total=False):
    """What `job` takes."""

    args: Mapping[str, Any] | None


class ScheduleChanges(ScheduleOptions, total=False):
    """What `update` takes; actions are in their JSON form."""

    schedule: GivenTiming | Object
    call: Object
    command: Object
    http: Object
    prompt: str
    agent: str | None
    session_config: Object | None
    event: Object
    dispatch: Object


def json_name(name: str) -> str:
    """snake_case to camelCase."""
    return re.sub(r"_([a-z])", lambda match: match[1].upper(), name)


def python_name(field: str) -> str:
    """camelCase to snake_case. What follows a dot is inside an object, which has its JSON names."""
    first, *inside = re.split(r"(?=[.\[])", field, maxsplit=1)
    return "".join((re.sub(r"[A-Z]", lambda match: f"_{match[0].lower()}", first), *inside))


RETRY_KEYWORDS: Final = {
    "retries": "times",
    "retry_delay": "delay",
    "retry_on": "on",
    "give_up_on": "giveUpOn",
}
"""The short form of `retry`, with the name of each in it."""


OPTION_NAMES: Final = (*map(python_name, OPTIONS.names), *RETRY_KEYWORDS)
JSON_NAMES: Final = frozenset(OPTIONS.names)
"""Options may have their JSON names too, as in 0.2; type checkers know those in snake_case."""
_OF_PROMPT: Final = ("agent", "session_config")
_OF_CALL: Final = ("args", "isolate")
ADD_NAMES: Final = (*ACTIONS, *_OF_CALL, *_OF_PROMPT, *OPTION_NAMES)
JOB_NAMES: Final = ("args", *OPTION_NAMES)
UPDATE_NAMES: Final = ("schedule", *ACTIONS, *_OF_PROMPT, *OPTION_NAMES)


def refuse_unknown(given: Collection[str], known: Collection[str]) -> None:
    """Refuse misspelt keywords, naming the nearest ones."""
    unknown = [name for name in given if name not in known and name not in JSON_NAMES]
    errors = [FieldError(name, f"unknown option; {_cure(name, known)}") for name in unknown]
    if errors:
        raise Invalid(*errors)


def _cure(name: str, known: Collection[str]) -> str:
    near = get_close_matches(python_name(name), known, 1)
    return f"did you mean {near[0]}?" if near else f"the options are {', '.join(known)}"


@contextmanager
def python_names(given: Collection[str]) -> Iterator[None]:
    """Errors about these options name the keywords, not the fields of the JSON form."""
    keywords = {f"retry.{inside}": name for name, inside in RETRY_KEYWORDS.items() if name in given}
    try:
        yield
    except Invalid as invalid:
        errors = (FieldError(keywords.get(one.field) or python_name(one.field), one.message) for one in invalid.errors)
        raise Invalid(*errors) from None
