"""One JSON shape for a definition, everywhere: request bodies, definition files, the store.

Reading collects every error before it refuses. Writing leaves out defaults, so that the stored text is small and equal
definitions have equal texts; `to_json(full=True)` includes everything, for people.
"""

import dataclasses
import json
import operator
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final, Literal
from urllib.parse import urlsplit

from wakeful.core.delivery.alert_rules import AlertChoice, AlertOption
from wakeful.core.errors import FieldError, Invalid
from wakeful.core.fields import Fields, check_plain, shown
from wakeful.core.retry_json import retry_from_fields, retry_to_json
from wakeful.core.schedule.actions import (
    OUTPUT_MAX,
    PASS_ENV_MAX,
    VARIABLE_PATTERN,
    ActionSpec,
    Call,
    Command,
    Event,
    Http,
    Prompt,
)
from wakeful.core.schedule.definition import Definition, Deliver, DeliverTo, check_slug, retry_of, usual_retry
from wakeful.core.schedule.policies import CATCH_UP_LIMIT, CATCH_UP_MAX, ERRORS_MAX, TIMEOUT, Retry
from wakeful.core.time.active_hours import ActiveHours, active_hours_from_json, active_hours_to_json
from wakeful.core.time.instants import format_duration
from wakeful.core.time.timing import Every, Once, Timing
from wakeful.core.time.timing_json import read_timing, timing_to_json, timing_to_store

ACTIONS: Final = ("prompt", "command", "http", "call", "event")
METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD")
OPTIONS: Final = (
    "enabled", "deliver", "catchUp", "catchUpMax", "maxLateness", "overlap", "timeout", "onCrash", "retry",
    "maxConsecutiveErrors", "activeHours", "stagger", "success", "slot", "lane", "alert",
)  # fmt: skip
WRITTEN: Final = ("slug", "schedule", *ACTIONS, "agent", "sessionConfig", *OPTIONS)
SHAPES_KEPT: Final = 4096
ADDRESSEES_MAX: Final = 20
"""The maximum number of recipients of one schedule."""
# Fields a schedule is returned with in addition to the written ones: accepted in a write, and ignored.
READ_BACK: Final = (
    "status", "statusReason", "lastRun", "lastResult", "lastError", "sessionId", "nextRun", "consecutiveErrors",
    "createdAt", "updatedAt", "version", "next", "description", "health", "lastOutcome",
)  # fmt: skip


def definition_from_json(data: Any, *, default_zone: str, slug: str | None = None) -> Definition:
    """Read a definition as a person wrote it; what its timing leaves open stays open.

    `slug` is the one in the path, if there is one."""
    check_plain(data)
    return _read(data, default_zone, slug)


def _read(data: Any, default_zone: str, slug: str | None) -> Definition:
    if not isinstance(data, Mapping):
        raise Invalid(FieldError("", "a definition is a JSON object; write {…}"))
    fields = Fields(data)
    fields.refuse_unknown((*WRITTEN, *READ_BACK))
    written_slug = fields.text("slug", slug or "")
    if slug is not None or isinstance(fields.raw("slug"), str | None):
        fields.read("slug", lambda _: check_slug(written_slug))
    if slug is not None and written_slug != slug:
        fields.fail("slug", f"{written_slug!r} does not match {slug!r} in the path; leave it out or make them equal")
    timing = None
    if not fields.has("schedule"):
        fields.fail("schedule", 'missing; say when, for example {"type": "every", "every": "2h"}')
    else:
        timing = fields.read("schedule", read_timing)
    action = _action(fields)
    options = _options(fields, default_zone) if any(name in data for name in OPTIONS) else {}
    fields.finish()
    if timing is None or action is None:  # finish() has raised; this is for the type checker
        raise Invalid(FieldError("schedule", "missing"))
    return _definition(written_slug, timing, action, options)


def definition_from_parts(
    slug: str, timing: Timing, action: ActionSpec, options: Mapping[str, Any], *, default_zone: str
) -> Definition:
    """The same for a Python program, which passes timing and action as values; options have their JSON names."""
    if not isinstance(action, Call) or action.args:
        _check_action(action)
    if not options:
        check_slug(slug)
        return Definition(slug, timing, action)
    check_plain(options)
    fields = Fields(options)
    fields.read("slug", lambda _: check_slug(slug))
    fields.refuse_unknown(OPTIONS)
    read = _options(fields, default_zone)
    fields.finish()
    return _definition(slug, timing, action, read)


def _check_action(action: ActionSpec) -> None:
    check_plain(action_to_json(action))


def _definition(slug: str, timing: Timing, action: ActionSpec, options: dict[str, Any]) -> Definition:
    retry = options.get("retry")
    if retry is not None and (retry.on or retry.give_up_on) and not isinstance(action, Call):
        field = "retry.on" if retry.on else "retry.giveUpOn"
        raise Invalid(FieldError(field, "is about exceptions, which only a call raises; leave it out"))
    if retry == usual_retry(action):
        options["retry"] = None  # an explicit default is the same definition
    return Definition(slug, timing, action, **options)


def action_from_json(name: str, value: Mapping[str, Any]) -> ActionSpec:
    """One action, by the name of its field."""
    check_plain({name: value})
    fields = Fields({name: value})
    action = fields.nested(name, ACTION_READERS[name])
    fields.finish()
    if action is None:  # finish() has raised; this is for the type checker
        raise Invalid(FieldError(name, "missing"))
    return action


def _options(fields: Fields, default_zone: str) -> dict[str, Any]:
    """All fields except slug, timing and action."""
    return {
        "enabled": fields.flag("enabled", True) if fields.has("enabled") else None,
        "deliver": _deliver(fields),
        "catch_up": fields.choice("catchUp", "once", ("once", "skip", "all")),
        "catch_up_max": fields.integer("catchUpMax", CATCH_UP_MAX, least=1, most=CATCH_UP_LIMIT),
        "lateness_max": fields.duration("maxLateness", None),
        "overlap": fields.choice("overlap", "skip", ("skip", "queue")),
        "timeout": fields.duration("timeout", TIMEOUT, least=1),
        "on_crash": fields.choice("onCrash", "retry", ("retry", "unknown")),
        "retry": _retry(fields),
        "errors_max": fields.integer("maxConsecutiveErrors", ERRORS_MAX, least=0),
        "active_hours": _active_hours(fields, default_zone),
        "stagger": fields.duration("stagger", 0),
        "success": fields.choice("success", None, (None, "accepted", "started", "finished")),
        "slot": fields.name_or_none("slot"),
        "lane": fields.name_or_none("lane"),
        "alert": _alert(fields),
    }


def action_to_json(action: ActionSpec) -> dict[str, Any]:
    """One action under the name of its field."""
    out: dict[str, Any] = {}
    _action_to_json(action, out, full=False)
    return out


def definition_to_json(definition: Definition, *, full: bool = False) -> dict[str, Any]:
    """The JSON shape; `full` includes defaults."""
    out: dict[str, Any] = {"slug": definition.slug}
    if full or definition.enabled is False:
        out["enabled"] = definition.enabled is not False
    out["schedule"] = timing_to_json(definition.timing)
    _action_to_json(definition.action, out, full)
    _options_to_json(definition, out, full)
    return out


def _options_to_json(definition: Definition, out: dict[str, Any], full: bool) -> None:
    if full or _plain_of(definition) != _USUAL_PLAIN:
        for name, attribute, write in _PLAIN:
            value = getattr(definition, attribute)
            if full or value != _USUAL[attribute]:
                out[name] = None if value is None else write(value)
    retry = retry_of(definition)
    if full or retry != usual_retry(definition.action):
        out["retry"] = retry_to_json(retry)


def encode_definition(definition: Definition) -> str:
    """The canonical text that is stored. `enabled` is not part of it: that is the state of the cadence.

    Joined from cached texts, because many schedules share the same timing and call."""
    slug, timing, action = definition.slug, definition.timing, definition.action
    if isinstance(action, Call) and not action.args:
        done = _call_text(action.target, action.isolate)
    else:
        done = _members(_action_to_json, action)
    options = _members(_options_to_json, definition)
    when = _timing_text(timing, _spelling(timing))
    return f'{{"slug":{_encode(slug)},"schedule":{when},{done}{"," if options else ""}{options}}}'


def _members(write: Callable[[Any, dict[str, Any], bool], None], value: Any) -> str:
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
    return _members(_action_to_json, Call(target, {}, isolate))


def decode_definition(text: str) -> Definition:
    """Read a stored definition. Everything in it was resolved when it was written, so it needs no clock and no zone."""
    head = _STORED_HEAD.match(text)
    if head is None:  # not in the form that `encode_definition` writes
        return _read(json.loads(text), "UTC", None)
    slug = head[1]
    check_slug(slug)
    return Definition(slug, *_decode_after_slug(text[head.end() :]))


@lru_cache(maxsize=SHAPES_KEPT)
def _decode_after_slug(members: str) -> tuple[Any, ...]:
    """The fields after the slug. Many schedules differ only in their name: these are decoded once and share values."""
    return _after_slug(_read(json.loads('{"slug":"a",' + members), "UTC", None))


def _deliver_json(deliver: DeliverTo | tuple[DeliverTo, ...]) -> dict[str, str] | list[dict[str, str]]:
    return (
        _addressee_json(deliver)
        if isinstance(deliver, DeliverTo)
        else [_addressee_json(recipient) for recipient in deliver]
    )


def _addressee_json(deliver: DeliverTo) -> dict[str, str]:
    return {"channel": deliver.channel} if deliver.to is None else {"channel": deliver.channel, "to": deliver.to}


def _alert_json(alert: AlertOption | Literal[False]) -> dict[str, Any] | Literal[False]:
    if alert is False:
        return False
    within = None if alert.within is None else format_duration(alert.within)
    written = {"errors": alert.errors, "within": within, "channel": alert.channel}
    return {name: value for name, value in written.items() if value is not None}


def _same(value: Any) -> Any:
    return value


_STORED_HEAD: Final = re.compile(r'\{"slug":"([a-z0-9._-]+)",')
_encode: Final = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode
_USUAL: Final = {field.name: field.default for field in dataclasses.fields(Definition)}
_after_slug: Final = operator.attrgetter(*(name for name in _USUAL if name != "slug"))
_PLAIN: Final[tuple[tuple[str, str, Callable[[Any], Any]], ...]] = (
    ("deliver", "deliver", _deliver_json),
    ("catchUp", "catch_up", _same),
    ("catchUpMax", "catch_up_max", _same),
    ("maxLateness", "lateness_max", format_duration),
    ("overlap", "overlap", _same),
    ("timeout", "timeout", format_duration),
    ("onCrash", "on_crash", _same),
    ("maxConsecutiveErrors", "errors_max", _same),
    ("activeHours", "active_hours", active_hours_to_json),
    ("stagger", "stagger", format_duration),
    ("success", "success", _same),
    ("slot", "slot", _same),
    ("lane", "lane", _same),
    ("alert", "alert", _alert_json),
)
_plain_of: Final = operator.attrgetter(*(attribute for _, attribute, _ in _PLAIN))
_USUAL_PLAIN: Final = tuple(_USUAL[attribute] for _, attribute, _ in _PLAIN)


def _action(fields: Fields) -> ActionSpec | None:
    given = [name for name in ACTIONS if fields.has(name)]
    if len(given) != 1:
        problem = "missing; say what to do" if not given else f"{' and '.join(given)} exclude one another"
        fields.fail(given[-1] if given else "action", f"{problem}: give exactly one of {', '.join(ACTIONS)}")
        return None
    name = given[0]
    if name != "prompt":
        for other in ("agent", "sessionConfig"):
            if fields.raw(other):
                fields.fail(other, f"belongs to a prompt; leave it out with {name}")
        return fields.nested(name, ACTION_READERS[name])
    text = fields.filled("prompt", "write the prompt for the agent")
    return Prompt(text, fields.text("agent", "default"), fields.mapping("sessionConfig"))


def _command(fields: Fields) -> Command:
    fields.refuse_unknown(("argv", "cwd", "env", "stdin", "outputMax", "passEnv"))
    argv = fields.raw("argv")
    if not isinstance(argv, list) or not argv or not all(isinstance(part, str) for part in argv) or not argv[0]:
        fields.fail("argv", 'must be a list of texts beginning with the program, for example ["make", "report"]')
        argv = ["true"]
    return Command(
        tuple(argv),
        fields.text_or_none("cwd"),
        fields.texts("env"),
        fields.text_or_none("stdin"),
        fields.integer("outputMax", OUTPUT_MAX, least=0),
        _pass_env(fields),
    )


def _pass_env(fields: Fields) -> tuple[str, ...]:
    given = fields.raw("passEnv")
    if given is None:
        return ()
    is_list = isinstance(given, list) and len(given) <= PASS_ENV_MAX
    if not is_list or not all(isinstance(name, str) and VARIABLE_PATTERN.fullmatch(name) for name in given):
        fields.fail("passEnv", f'must be a list of at most {PASS_ENV_MAX} variable names, for example ["GH_TOKEN"]')
        return ()
    return tuple(dict.fromkeys(given))


def _http(fields: Fields) -> Http:
    fields.refuse_unknown(("method", "url", "headers", "body"))
    url = fields.filled("url", "write for example http://127.0.0.1:9000/in")
    if url.strip() and not _is_http(url):
        fields.fail("url", f"{shown(url)} is not an http or https address; write for example http://127.0.0.1:9000/in")
    method = fields.text("method", "POST").upper()
    if method not in METHODS:
        fields.fail("method", f"{shown(method)} is none of {', '.join(METHODS)}")
    return Http(method, url, fields.texts("headers"), fields.raw("body"))


def _is_http(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # unbalanced brackets, or a port above 65535
        return False


def _call(fields: Fields) -> Call:
    fields.refuse_unknown(("target", "args", "isolate"))
    target = fields.filled("target", "name a registered callable or module:function")
    return Call(target, fields.mapping("args"), fields.choice("isolate", None, (None, "process")))


def _event(fields: Fields) -> Event:
    fields.refuse_unknown(("text", "contextKey"))
    text = fields.filled("text", "write what the heartbeat should look at")
    return Event(text, fields.text_or_none("contextKey"))


ACTION_READERS: Final[dict[str, Callable[[Fields], ActionSpec]]] = {
    "command": _command,
    "http": _http,
    "call": _call,
    "event": _event,
}


def _deliver(fields: Fields) -> Deliver:
    if not isinstance(fields.raw("deliver"), list):
        return fields.nested("deliver", _deliver_to) if fields.has("deliver") else None
    cure = 'name one or more, like [{"channel": "phone"}, {"channel": "mail"}], or leave it out'
    addressees = fields.items("deliver", _deliver_to, most=ADDRESSEES_MAX, cure=cure)
    for number, addressee in enumerate(addressees):
        if addressee in addressees[:number]:
            fields.fail(f"deliver[{number}]", f"{addressee.channel!r} is named twice; remove one of them")
    return addressees


def _deliver_to(fields: Fields) -> DeliverTo:
    fields.refuse_unknown(("channel", "to"))
    channel = fields.filled("channel", "name a channel, or last")
    return DeliverTo(channel, fields.text_or_none("to"))


def _alert(fields: Fields) -> AlertChoice:
    raw = fields.raw("alert")
    if raw is False or raw is None:
        return raw
    if not isinstance(raw, Mapping):
        cure = 'write false for none, null for the [alerts] settings, or for example {"errors": 3, "within": "2h"}'
        fields.fail("alert", f"{shown(raw)} is not an alert; {cure}")
        return None
    option = fields.nested("alert", _alert_option)
    return None if option == AlertOption() else option


def _alert_option(fields: Fields) -> AlertOption:
    fields.refuse_unknown(("errors", "within", "channel"))
    return AlertOption(
        fields.integer("errors", 1, least=1) if fields.has("errors") else None,
        fields.duration("within", None, least=1_000),
        fields.filled("channel", "name a channel, or last") if fields.has("channel") else None,
    )


def _retry(fields: Fields) -> Retry | None:
    return fields.nested("retry", retry_from_fields) if fields.has("retry") else None


def _active_hours(fields: Fields, default_zone: str) -> ActiveHours | None:
    if not fields.has("activeHours"):
        return None
    return fields.read("activeHours", lambda value: active_hours_from_json(value, default_zone=default_zone))


def _action_to_json(action: ActionSpec, out: dict[str, Any], full: bool) -> None:
    match action:
        case Prompt(text, agent, session_config):
            out["prompt"] = text
            if full or agent != "default":
                out["agent"] = agent
            if full or session_config:
                out["sessionConfig"] = dict(session_config)
        case Command(argv, cwd, env, stdin, output_max, pass_env):
            optional = {"cwd": cwd, "env": dict(env) or None, "stdin": stdin, "passEnv": list(pass_env) or None}
            out["command"] = {"argv": list(argv), **{k: v for k, v in optional.items() if v is not None}}
            if output_max != OUTPUT_MAX:
                out["command"]["outputMax"] = output_max
        case Http(method, url, headers, body):
            out["http"] = {"method": method, "url": url}
            if headers:
                out["http"]["headers"] = dict(headers)
            if body is not None:
                out["http"]["body"] = body
        case Call(target, args, isolate):
            out["call"] = {"target": target}
            if args:
                out["call"]["args"] = dict(args)
            if isolate:
                out["call"]["isolate"] = isolate
        case Event(text, context_key):
            out["event"] = {"text": text}
            if context_key is not None:
                out["event"]["contextKey"] = context_key
