"""The environment of a process that an attempt starts.

A daemon's environment contains the keys of its agents and channels. A program must not get them by accident: variables
that the settings name as secrets, and those whose names look like secrets, are withheld unless the definition lists
them in `passEnv`. An app embedded in another program withholds nothing.
"""

import os
import re
import sysconfig
from collections.abc import Mapping, Sequence
from typing import Final

from wakeful.core.time.instants import format_instant
from wakeful.ports.action import Fire, Withholds

RUN_ID: Final = "WAKEFUL_RUN_ID"
RUN_TOKEN: Final = "WAKEFUL_RUN_TOKEN"  # noqa: S105 - the name of a variable
_RECEIPT_URL: Final = "WAKEFUL_RECEIPT_URL"
_NAMES_MAX: Final = 20
_OF_ANOTHER_RUN: Final = (_RECEIPT_URL, RUN_TOKEN, "WAKEFUL_URL")
_NEVER_WITHHELD: Final = frozenset({"SSH_AUTH_SOCK", "PATH", "HOME"})
_LIKE_A_SECRET: Final = re.compile(r".*_(TOKEN|KEY|SECRET)|.*(PASSWORD|CREDENTIALS).*", re.IGNORECASE | re.DOTALL)


def is_secret_variable(name: str, named: frozenset[str] = frozenset()) -> bool:
    """Whether a variable is a secret: by its name, or because the settings refer to it (`named`)."""
    if name in _NEVER_WITHHELD:
        return False
    return name in named or _LIKE_A_SECRET.fullmatch(name) is not None


def environment(fire: Fire, extra: Mapping[str, str], pass_env: Sequence[str] = ()) -> dict[str, str]:
    """Our environment without withheld variables, overridden by the definition's, then by this attempt's facts."""
    own = dict(os.environ)
    for name in withheld(fire.withholds, pass_env, extra):
        del own[name]
    merged = {**own, **extra}
    for name in _OF_ANOTHER_RUN:  # a daemon started by a run would pass on that run's identity
        merged.pop(name, None)
    if fire.access is not None:  # so that `wakeful wake` is found, after everything else on the path
        merged["PATH"] = os.pathsep.join(filter(None, (merged.get("PATH"), sysconfig.get_path("scripts"))))
    return merged | _facts(fire)


def withheld(withholds: Withholds | None, pass_env: Sequence[str], extra: Mapping[str, str]) -> list[str]:
    """The names of our variables that are withheld from a program."""
    if withholds is None:
        return []
    given = {*pass_env, *extra}
    return sorted(name for name in os.environ if name not in given and withholds(name))


def withheld_note(names: Sequence[str], field: str) -> str:
    """A note for the output of a failed program, which may have needed these variables."""
    if not names:
        return ""
    more = f" and {len(names) - _NAMES_MAX} more" if len(names) > _NAMES_MAX else ""
    listed = ", ".join(names[:_NAMES_MAX]) + more
    return f"\n[not in its environment, because they look like secrets: {listed}; list what it needs in {field}]"


def _facts(fire: Fire) -> dict[str, str]:
    facts = {
        "WAKEFUL_SLUG": fire.slug,
        RUN_ID: str(fire.run_id),
        "WAKEFUL_PLANNED_AT": format_instant(fire.planned_at),
        "WAKEFUL_ATTEMPT": str(fire.attempt),
        "WAKEFUL_IDEMPOTENCY_KEY": fire.idempotency_key,
    }
    if fire.receipt_url is not None:
        facts[_RECEIPT_URL] = fire.receipt_url
    if fire.traceparent is not None:
        facts["TRACEPARENT"] = fire.traceparent
    if fire.access is not None:
        facts |= {"WAKEFUL_URL": fire.access.url, RUN_TOKEN: fire.access.token}
        facts |= {} if fire.access.home is None else {"WAKEFUL_HOME": fire.access.home}
    return facts
