"""The JSON shape of `retry`: how many times, with which delay, and after which exceptions of a call."""

import builtins
import re
from typing import Any, Final

from wakeful.core.fields import Fields, shown
from wakeful.core.schedule.policies import MINUTE, Retry
from wakeful.core.time.instants import format_duration

BACKOFF_MAX: Final = 10
EXCEPTIONS_MAX: Final = 20
_NAME: Final = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")
_NAME_MAX: Final = 200


def retry_from_fields(fields: Fields) -> Retry:
    """Read it, collecting every error."""
    fields.refuse_unknown(("times", "delay", "backoff", "delayMax", "on", "giveUpOn"))
    delay = fields.duration("delay", 30 * MINUTE, least=1) or 0
    delay_max = fields.duration("delayMax", None, least=1)
    if delay_max is not None and delay_max < delay:
        fields.fail("delayMax", f"{format_duration(delay_max)} is shorter than the delay, {format_duration(delay)}")
    return Retry(
        fields.integer("times", 0, least=0) if fields.has("times") else None,
        delay,
        fields.integer("backoff", 1, least=1, most=BACKOFF_MAX),
        delay_max,
        _exceptions(fields, "on"),
        _exceptions(fields, "giveUpOn"),
    )


def retry_to_json(retry: Retry) -> dict[str, Any]:
    """Write it; defaults other than `times` and `delay` are left out."""
    out: dict[str, Any] = {"times": retry.times, "delay": format_duration(retry.delay)}
    if retry.backoff != 1:
        out["backoff"] = retry.backoff
    if retry.delay_max is not None:
        out["delayMax"] = format_duration(retry.delay_max)
    if retry.on:
        out["on"] = list(retry.on)
    if retry.give_up_on:
        out["giveUpOn"] = list(retry.give_up_on)
    return out


def _exceptions(fields: Fields, name: str) -> tuple[str, ...]:
    """Names of exceptions: built-in ones as they are, others with their module."""
    if not fields.has(name):
        return ()
    given = fields.raw(name)
    if not isinstance(given, list | tuple) or not 1 <= len(given) <= EXCEPTIONS_MAX:
        fields.fail(name, f'is not a list of 1 to {EXCEPTIONS_MAX} names; write it like ["ConnectionError"]')
        return ()
    for exception in given:
        if not isinstance(exception, str) or len(exception) > _NAME_MAX or not _NAME.fullmatch(exception):
            fields.fail(name, f"{shown(exception)} is not the name of an exception; write it like httpx.ConnectError")
        elif "." not in exception and not _is_built_in(exception):
            fields.fail(name, f"{shown(exception)} is not a built-in exception; write others with their module")
    return tuple(exception for exception in given if isinstance(exception, str))


def _is_built_in(name: str) -> bool:
    kind = getattr(builtins, name, None)
    return isinstance(kind, type) and issubclass(kind, BaseException)
