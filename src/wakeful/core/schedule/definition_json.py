"""One JSON shape for a definition, everywhere: request bodies, definition files, the store.

Reading collects every error before it refuses. Writing leaves out defaults, so that the stored text is small and equal
definitions have equal texts; `to_json(full=True)` includes everything, for people.
"""

import dataclasses
import json
import operator
import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, Final, Literal, NamedTuple

from wakeful.core.errors import FieldError, Invalid
from wakeful.core.fields import Fields, check_plain
from wakeful.core.schedule.actions import OBJECTS, PROMPT, ActionSpec, Call, Prompt, action_to_json
from wakeful.core.schedule.definition import OPTIONS, SCHEDULE, Definition, check_slug, retry_of, usual_retry
from wakeful.core.schedule.policies import RETRY
from wakeful.core.time.instants import Instant
from wakeful.core.time.timing import Every, Once, Timing
from wakeful.core.time.timing_json import timing_to_json, timing_to_store
from wakeful.core.time.when import read_when

ACTIONS: Final = ("prompt", *OBJECTS)
WRITTEN: Final = SCHEDULE.names
SHAPES_KEPT: Final = 4096
READ_BACK: Final = SCHEDULE.read_back
_SCHEDULE: Final = SCHEDULE.only("schedule")


def definition_from_json(
    data: Any, *, default_zone: str, slug: str | None = None, now: Instant | None = None
) -> Definition:
    """Read a definition as a person wrote it; what its timing leaves open stays open.

    `slug` is the one in the path, if there is one. With `now` the schedule may be a string (`weekdays at 9:00`)."""
    check_plain(data)
    if now is not None and isinstance(data, Mapping) and isinstance(data.get("schedule"), str):
        timing = read_when(data["schedule"], now=now, default_zone=default_zone, field="schedule")
        data = {**data, "schedule": timing_to_json(timing)}
    return _read(data, default_zone, slug)


def _read(data: Any, default_zone: str, slug: str | None) -> Definition:
    if not isinstance(data, Mapping):
        raise Invalid(FieldError("", "a definition is a JSON object; write {…}"))
    fields = Fields(data, zone=default_zone)
    fields.refuse_unknown(SCHEDULE.known)
    written_slug = fields.text("slug", slug or "")
    if slug is not None or isinstance(fields.raw("slug"), str | None):
        fields.read("slug", lambda _: check_slug(written_slug))
    if slug is not None and written_slug != slug:
        fields.fail("slug", f"{written_slug!r} does not match {slug!r} in the path; leave it out or make them equal")
    timing = _SCHEDULE.given(fields)
    action = _action(fields)
    options = OPTIONS.given(fields)
    fields.finish()
    if action is None:  # finish() has raised; this is for the type checker
        raise Invalid(FieldError("action", "missing"))
    return _definition(written_slug, timing["timing"], action, options)


def definition_from_parts(
    slug: str, timing: Timing, action: ActionSpec, options: Mapping[str, Any], *, default_zone: str
) -> Definition:
    """Like `definition_from_json`, for a Python program, which passes timing and action as values; options have their
    JSON names."""
    if not isinstance(action, Call) or action.args:
        _check_action(action)
    if not options:
        check_slug(slug)
        return Definition(slug, timing, action)
    check_plain(options)
    fields = Fields(options, zone=default_zone)
    fields.read("slug", lambda _: check_slug(slug))
    fields.refuse_unknown(OPTIONS.names)
    read = OPTIONS.given(fields)
    fields.finish()
    return _definition(slug, timing, action, read)


def _check_action(action: ActionSpec) -> None:
    check_plain(action_to_json(action))


def _definition(slug: str, timing: Timing, action: ActionSpec, options: dict[str, Any]) -> Definition:
    retry = options.get("retry")
    if retry is not None and (retry.on or retry.give_up_on) and not isinstance(action, Call):
        field = "retry.on" if retry.on else "retry.giveUpOn"
        raise Invalid(FieldError(field, "is about exceptions, which only a call raises; leave it out"))
    for name in ("budget", "check"):
        if options.get(name) is not None and not isinstance(action, Prompt):
            raise Invalid(FieldError(name, "only works with a prompt; leave it out"))
    if retry == usual_retry(action):
        options["retry"] = None  # an explicit default is the same definition
    return Definition(slug, timing, action, **options)


def action_from_json(name: str, value: Mapping[str, Any]) -> ActionSpec:
    """One action, by the name of its field."""
    check_plain({name: value})
    fields = Fields({name: value})
    action: ActionSpec | None = fields.nested(name, OBJECTS[name].read)
    fields.finish()
    if action is None:  # finish() has raised; this is for the type checker
        raise Invalid(FieldError(name, "missing"))
    return action


def definition_to_json(definition: Definition, *, full: bool = False) -> dict[str, Any]:
    """The JSON shape; `full` includes defaults."""
    out: dict[str, Any] = {"slug": definition.slug}
    if full or definition.enabled is False:
        out["enabled"] = definition.enabled is not False
    out["schedule"] = timing_to_json(definition.timing)
    action_to_json(definition.action, out, full)
    _options_to_json(definition, out, full)
    return out


def _options_to_json(definition: Definition, out: dict[str, Any], full: bool) -> None:
    _WRITTEN_OPTIONS.write(definition, out, full)
    retry = retry_of(definition)
    if full or retry != usual_retry(definition.action):
        out["retry"] = RETRY.write(retry)


def encode_definition(definition: Definition) -> str:
    """The canonical text that is stored. `enabled` is not part of it: that is the state of the cadence."""
    return f'{{"slug":{_encode_text(definition.slug)},{_after_slug_text(definition)}}}'


class Encoded(NamedTuple):
    """A definition as it is stored. In a row of definitions that differ only in their slugs, all have the first as
    `model`."""

    slug: str
    text: str
    model: Definition


def encode_many(definitions: Iterable[Definition], slugs: Iterable[str]) -> list[Encoded]:
    """The encoded text of many definitions under these slugs; parts that consecutive definitions share are encoded
    once."""
    encoded: list[Encoded] = []
    before: Definition | None = None
    model: Definition | None = None
    shared: object = None
    rest = ""
    for definition, slug in zip(definitions, slugs, strict=True):
        options = shared if definition is before else _options(definition)
        if (
            model is None
            or shared != options
            or not is_same_work(model.timing, model.action, definition.timing, definition.action)
        ):
            model, shared, rest = definition, options, _after_slug_text(definition)
        before = definition
        encoded.append(Encoded(slug, f'{{"slug":{_encode_text(slug)},{rest}}}', model))
    return encoded


def is_same_work(timing: Timing, action: ActionSpec, other_timing: Timing, other_action: ActionSpec) -> bool:
    """Whether two definitions certainly do the same at the same times. Being equal is not enough: equal timings may be
    spelt differently, and equal arguments may have different texts, such as 1 and true."""
    is_timing = timing is other_timing or (timing == other_timing and _spelling(timing) == _spelling(other_timing))
    is_action = action is other_action or (isinstance(action, Call) and not action.args and action == other_action)
    return is_timing and is_action


def under_slug(definition: Definition, slug: str) -> Definition:
    """The same definition under a slug, which the caller has checked."""
    return definition if definition.slug == slug else Definition(slug, *_after_slug(definition))


def _after_slug_text(definition: Definition) -> str:
    """Joined from cached parts, because many schedules share the same timing and call."""
    timing, action = definition.timing, definition.action
    if isinstance(action, Call) and not action.args:
        done = _call_text(action.target, action.isolate)
    else:
        done = _members(action_to_json, action)
    options = _members(_options_to_json, definition)
    when = _timing_text(timing, _spelling(timing))
    return f'"schedule":{when},{done}{"," if options else ""}{options}'


def _members(write: Callable[[Any, dict[str, Any], bool], object], value: Any) -> str:
    """What `write` produces for a value, as members of a JSON object."""
    out: dict[str, Any] = {}
    write(value, out, False)
    return _encode(out)[1:-1] if out else ""


def _spelling(timing: Timing) -> tuple[str | None, ...]:
    """Equal timings may be spelt differently, and each is stored as it was written."""
    match timing:
        case Once():
            return timing.timezone, timing.kind, timing.written
        case Every():
            return timing.timezone, timing.kind, timing.written, timing.anchor_written
        case _:
            return ()


@lru_cache(maxsize=SHAPES_KEPT)
def _timing_text(timing: Timing, _spelling: tuple[str | None, ...]) -> str:
    return _encode(timing_to_store(timing))


@lru_cache(maxsize=SHAPES_KEPT)
def _call_text(target: str, isolate: Literal["process"] | None) -> str:
    return _members(action_to_json, Call(target, {}, isolate))


def decode_definition(text: str) -> Definition:
    """Read a stored definition. Everything in it was resolved when it was written, so it needs no clock and no zone."""
    parts = split_stored(text)
    if parts is None:
        return _read(json.loads(text), "UTC", None)
    slug, members = parts
    return under_slug(decode_members(members), slug)


def split_stored(text: str) -> tuple[str, str] | None:
    """The slug of a stored definition, and the text of its other members; None if the text does not have the form that
    `encode_definition` writes."""
    head = _STORED_HEAD.match(text)
    if head is None:
        return None
    check_slug(head[1])
    return head[1], text[head.end() :]


@lru_cache(maxsize=SHAPES_KEPT)
def decode_members(members: str) -> Definition:
    """A definition under any slug. Many schedules differ only in their slugs: they are decoded once."""
    return _read(json.loads(f'{{"slug":"{_ANY_SLUG}",{members}'), "UTC", None)


_ANY_SLUG: Final = "a"
_STORED_HEAD: Final = re.compile(r'\{"slug":"([a-z0-9._-]+)",')
_encode: Final = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode
_encode_text: Final = json.encoder.encode_basestring  # what `_encode` does with a string, without its preparations
_after_slug: Final = operator.attrgetter(
    *(field.name for field in dataclasses.fields(Definition) if field.name != "slug")
)
_options: Final = operator.attrgetter(
    *(field.name for field in dataclasses.fields(Definition) if field.name not in ("slug", "timing", "action"))
)
_WRITTEN_OPTIONS: Final = OPTIONS.only(without=("enabled", "retry"))


def _action(fields: Fields) -> ActionSpec | None:
    given = [name for name in ACTIONS if fields.has(name)]
    if len(given) != 1:
        problem = "missing; say what to do" if not given else f"{' and '.join(given)} are mutually exclusive"
        fields.fail(given[-1] if given else "action", f"{problem}: give exactly one of {', '.join(ACTIONS)}")
        return None
    name = given[0]
    if name != "prompt":
        for other in ("agent", "sessionConfig"):
            if fields.raw(other):
                fields.fail(other, f"only works with a prompt; leave it out with {name}")
        return fields.nested(name, OBJECTS[name].read)
    return PROMPT.take(fields)
