"""Partial changes to definitions in their JSON shape."""

from collections.abc import Mapping
from typing import Any, Final

from wakeful.app.plain import plain_options
from wakeful.app.schedule_options import RETRY_KEYWORDS, json_name
from wakeful.core.errors import refuse
from wakeful.core.exception_names import exception_name
from wakeful.core.schedule.definition_json import READ_BACK, WRITTEN
from wakeful.core.time.instants import format_duration
from wakeful.core.time.timing_builders import as_duration

RETRY_USUAL: Final[Mapping[str, Any]] = {"delay": "10s", "backoff": 2, "delayMax": "1h"}
"""The delays that `retries=3` implies: 10, 20 and 40 seconds."""


def merge(target: Any, patch: Any) -> Any:
    """A JSON merge patch (RFC 7396): null removes, objects merge, everything else replaces."""
    if not isinstance(patch, Mapping):
        return patch
    merged = dict(target) if isinstance(target, Mapping) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = merge(merged.get(name), value)
    return merged


def without_other_kind(definition: dict[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """The definition without its timing if the changes set another kind of timing, which shares no fields with it."""
    timing = changes.get("schedule")
    if (
        isinstance(timing, Mapping)
        and timing.get("type", definition["schedule"]["type"]) != definition["schedule"]["type"]
    ):
        return {name: value for name, value in definition.items() if name != "schedule"}
    return definition


def definition_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of `add` and `job` as fields of a definition. `retries` and related options become `retry`, with
    exponential backoff and with exceptions by name."""
    given = {name: value for name, value in options.items() if name in RETRY_KEYWORDS and value is not None}
    rest = plain_options({name: value for name, value in options.items() if name not in RETRY_KEYWORDS})
    rest = {json_name(name): value for name, value in rest.items()}
    if not given:
        return rest
    if rest.get("retry") is not None:
        refuse(
            "retry", f"cannot be combined with {', '.join(given)}; write all of it in retry={{…}}, or leave retry out"
        )
    if "retries" not in given:
        refuse("retries", f"is required with {', '.join(given)}; say how often, e.g. retries=3")
    retry = {**RETRY_USUAL, "times": given["retries"]}
    if "retry_delay" in given:
        retry |= {"delay": format_duration(as_duration(given["retry_delay"], "retry_delay")), "delayMax": None}
    kinds = {RETRY_KEYWORDS[name]: _names(name, given[name]) for name in ("retry_on", "give_up_on") if name in given}
    return rest | {"retry": retry | kinds}


def _names(field: str, kinds: Any) -> list[str]:
    return [_exception(field, kind) for kind in (kinds if isinstance(kinds, list | tuple) else [kinds])]


def _exception(field: str, kind: Any) -> str:
    if isinstance(kind, type) and issubclass(kind, BaseException):
        return exception_name(kind)
    if not isinstance(kind, str):
        refuse(field, f"{kind!r} is not a type of exception; write it like {field}=(ConnectionError,)")
    return kind


def changed(definition: dict[str, Any], changes: Mapping[str, Any]) -> Any:
    """A definition with changes merged into it. Unknown fields that are set to null are kept, so that they are refused
    like other unknown fields."""
    unknown = {name: None for name, value in changes.items() if value is None and name not in (*WRITTEN, *READ_BACK)}
    return {**merge(without_other_kind(definition, changes), changes), **unknown}
