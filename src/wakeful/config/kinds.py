"""The kinds of values in the settings: how each is read, validated and described in the reference.

A `Kind` annotates a field (`Annotated[int, duration("1s", "1h")]`) and does three things: it reads the value for
pydantic, describes it in the reference, and provides an example for error messages.
"""

from __future__ import annotations

import ipaddress
import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, time
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

from pydantic import Field, GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

from wakeful.config.faults import Refusal, refusal, refusal_inside
from wakeful.config.secrets import Secret, SecretReader, SecretUrl
from wakeful.core.errors import Invalid
from wakeful.core.fields import shown as shown_plain
from wakeful.core.kinds import DURATION_SCHEMA
from wakeful.core.kinds import listed as list_schema
from wakeful.core.schedule.exclude import parse_date
from wakeful.core.schedule.labels import LABEL_CURE, is_label
from wakeful.core.time.active_hours import parse_time_of_day
from wakeful.core.time.instants import format_duration, parse_duration
from wakeful.core.time.zones import check_zone
from wakeful.integrations.net.guard import is_loopback, is_public, plain_name

T = TypeVar("T")

TEXT_MAX: Final = 100_000
LIST_MAX: Final = 1_000
_UNITS: Final = {"": 1, "b": 1, "kib": 2**10, "mib": 2**20, "gib": 2**30, "kb": 10**3, "mb": 10**6, "gb": 10**9}
_SIZE: Final = re.compile(r"(\d{1,15})\s*([KMG]i?B|B)?", re.IGNORECASE | re.ASCII)
_HOST_NAME: Final = re.compile(r"(?!-)[A-Za-z0-9_-]{1,63}(?:\.[A-Za-z0-9_-]{1,63})*\.?", re.ASCII)
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*", re.ASCII)
_MODULE: Final = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")
_HEADER: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,200}", re.ASCII)
_OWN_HEADERS: Final = frozenset(
    {"host", "connection", "content-length", "transfer-encoding", "upgrade", "te", "trailer"}
)
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Reading:
    """The context for reading values: the resolver of secrets, and all agents named in the file."""

    secrets: SecretReader
    agents: frozenset[str]


@dataclass(frozen=True, slots=True)
class Kind:
    """How one value is read; `words` and `example` are for messages and the reference."""

    words: str
    example: str
    read: Callable[[Any, SecretReader | None], Any]
    schema: Mapping[str, Any] = field(default_factory=lambda: {"type": "string"}, hash=False)  # of its JSON form

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        def read(value: Any, info: core_schema.ValidationInfo[Any]) -> Any:
            if value is None:  # TOML has no null: this is a default, "not set"
                return None
            reading: Reading | None = info.context
            try:
                return self.read(value, reading.secrets if reading else None)
            except Invalid as invalid:
                raise refusal(short(invalid.errors[0].message)) from None

        return core_schema.with_info_plain_validator_function(
            read, serialization=core_schema.plain_serializer_function_ser_schema(masked)
        )


UNUSED: Final = "unused"


def setting(default: Any = ..., *, says: str) -> Any:
    """A field: its default as written in the file, and its description."""
    return Field(default, validate_default=True, description=says)


def unused(default: Any) -> Any:
    """A field from similar tables that has no effect in this one. A file that sets it loads with a warning."""
    says = "has no effect with this adapter; setting it gives a warning"
    return Field(default, validate_default=True, description=says, json_schema_extra={UNUSED: True})


def masked(value: Any) -> Any:
    """The value as shown to people."""
    match value:
        case Secret() | SecretUrl():
            return str(value)
        case Mapping():
            return {name: masked(inner) for name, inner in value.items()}
        case tuple() | list():
            return [masked(inner) for inner in value]
        case _:
            return value


def shown(value: Any) -> str:
    """The value as quoted in messages: in TOML syntax, shortened."""
    match value:
        case bool():
            return "true" if value else "false"
        case datetime() | date() | time():
            return value.isoformat()
        case Mapping():
            return "a table"
        case list():
            return "a list"
        case _:
            return shown_plain(value)


def short(message: str) -> str:
    """Shorten a message that quotes a huge value; its start and its cure stay."""
    return message if len(message) <= 400 else f"{message[:200]} … {message[-200:]}"


# Numbers, durations, sizes


def flag() -> Kind:
    def read(value: Any, _: object) -> bool:
        if not isinstance(value, bool):
            raise refusal(f"{shown(value)} is not true or false; write one of them without quotes")
        return value

    return Kind("true or false", "true", read, {"type": "boolean"})


def count(least: int, most: int) -> Kind:
    def read(value: Any, _: object) -> int:
        if isinstance(value, float) and math.isfinite(value) and value.is_integer():
            raise refusal(f"{shown(value)} is not a whole number; write it without a decimal point")
        if not isinstance(value, int) or isinstance(value, bool):
            raise refusal(f"{shown(value)} is not a whole number; write one from {least} to {most}, without quotes")
        if value < least:
            raise refusal(f"{shown(value)} is too small; give at least {least}")
        if value > most:
            raise refusal(f"{shown(value)} is too large; give at most {most}")
        return value

    schema = {"type": "integer", "minimum": least, "maximum": most}
    return Kind(f"whole number, {least} to {most}", str(least), read, schema)


def amount(least: float, most: float, words: str, example: str) -> Kind:
    """A number that may have a fraction."""

    def read(value: Any, _: object) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise refusal(f"{shown(value)} is not a number; write {words} without quotes, like {example}")
        if not least <= value <= most:
            raise refusal(f"{shown(value)} is out of range; write {words} from {least:g} to {most:g}")
        return float(value)

    return Kind(words, example, read, {"type": "number", "minimum": least, "maximum": most})


def dollars(example: str = "5.00") -> Kind:
    """An amount of money."""
    return amount(0.000001, 1_000_000, "an amount in US dollars", example)


def duration(least: str, most: str) -> Kind:
    low, high = parse_duration(least), parse_duration(most)

    def read(value: Any, _: object) -> int:
        if not isinstance(value, str):
            raise refusal(f'{shown(value)} is not a duration; write it in quotes with its unit, like "90s" or "30m"')
        try:
            ms = parse_duration(value)
        except Invalid:
            raise
        except ValueError:  # more digits than Python is willing to parse
            raise refusal(f"{shown(value)} is too long; give at most {most}") from None
        if ms < low:
            raise refusal(f"{shown(value)} is too short; give at least {least}")
        if ms > high:
            raise refusal(f"{shown(value)} is too long; give at most {most}")
        return ms

    return Kind(f"duration, {least} to {most}", f'"{format_duration(max(low, 60_000))}"', read, DURATION_SCHEMA)


def size(least: str, most: str) -> Kind:
    low, high = _bytes(least), _bytes(most)

    def read(value: Any, _: object) -> int:
        amount = _bytes(value)
        if amount is None:
            raise refusal(f'{shown(value)} is not a size; write it in quotes with its unit, like "64KiB" or "1MiB"')
        if low is not None and amount < low:
            raise refusal(f"{shown(value)} is too small; give at least {least}")
        if high is not None and amount > high:
            raise refusal(f"{shown(value)} is too large; give at most {most}")
        return amount

    return Kind(f"size, {least} to {most}", '"1MiB"', read)


def _bytes(value: Any) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    match = _SIZE.fullmatch(value.strip()) if isinstance(value, str) else None
    return int(match[1]) * _UNITS[(match[2] or "").lower()] if match else None


# Strings


def text(words: str = "text", *, most: int = TEXT_MAX, example: str = '"…"') -> Kind:
    def read(value: Any, _: object) -> str:
        return plain_text(value, most)

    return Kind(words, example, read)


def plain_text(value: Any, most: int = TEXT_MAX, *, may_be_empty: bool = False) -> str:
    """A non-empty string that can be stored and passed to a program."""
    if not isinstance(value, str):
        raise refusal(f"{shown(value)} is not a string; put it in quotes")
    if not may_be_empty and not value.strip():
        raise refusal("is empty; write a value, or remove the line")
    if len(value) > most:
        raise refusal(f"has {len(value)} characters; give at most {most}")
    if "\0" in value:
        raise refusal("contains a NUL character, which cannot be stored; remove it")
    return value


def json_text() -> Kind:
    def read(value: Any, _: object) -> str:
        text = plain_text(value)
        try:
            json.loads(text)
        except (ValueError, RecursionError):
            raise refusal('is not JSON; write it in single quotes, like \'{"model": "…"}\'') from None
        return text

    return Kind("JSON as a string", "'{…}'", read)


def matching(words: str, pattern: re.Pattern[str], cure: str, *, example: str, most: int = 200) -> Kind:
    def read(value: Any, _: object) -> str:
        text = plain_text(value, most)
        if not pattern.fullmatch(text):
            raise refusal(f"{shown(text)} is not {words}; {cure}")
        return text

    return Kind(words, example, read)


def name(most: int = 64, *, reserved: Mapping[str, str] = MappingProxyType({})) -> Kind:
    """A name that also appears in URLs and log lines; a reserved name is refused with its meaning."""
    plain = matching("a name", _NAME, "use letters, digits, and . _ - after the first", example="name", most=most)

    def read(value: Any, reader: SecretReader | None) -> Any:
        text = plain.read(value, reader)
        if text in reserved:
            raise refusal(f"'{text}' means {reserved[text]}; choose another name")
        return text

    return Kind(plain.words, plain.example, read)


def module() -> Kind:
    return matching("a module", _MODULE, 'write it as import does, like "mypackage.flows"', example='"mypackage.flows"')


def call_target() -> Kind:
    pattern = re.compile(rf"{_MODULE.pattern}:{_MODULE.pattern}")
    return matching(
        "MODULE:FUNCTION", pattern, 'write it like "mypackage.agents:answer"', example='"mypackage.agents:answer"'
    )


def single_word(most: int) -> Kind:
    return matching("a word", re.compile(r"\S+"), "write it without spaces", example='"WORD"', most=most)


def folder() -> Kind:
    def read(value: Any, reader: SecretReader | None) -> Path:
        try:
            return _reader(reader).home / Path(plain_text(value, 4_096)).expanduser()
        except RuntimeError:
            raise refusal(f"{shown(value)} starts with an unknown user's home; write the path in full") from None

    return Kind("folder, relative to the home folder", '"PATH"', read)


def regex(groups: int = 1) -> Kind:
    """A regular expression; with a group, that is the part that is used."""

    def read(value: Any, _: object) -> re.Pattern[str]:
        try:
            pattern = re.compile(plain_text(value, 1_000))
        except (re.error, RecursionError, OverflowError) as error:
            raise refusal(f"{shown(value)} is not a regular expression ({error}); correct it") from None
        if groups and pattern.groups != groups:
            raise refusal(
                f"{shown(value)} has {pattern.groups} groups; put (…) around the one part to use, (?:…) elsewhere"
            )
        return pattern

    if not groups:
        return Kind("regular expression", "'no such session'", read)
    return Kind("regular expression with one group", "'session: (\\S+)'", read)


def naming(place: str, words: str, *, example: str, begins: str = "") -> Kind:
    """A string with a placeholder."""

    def read(value: Any, _: object) -> str:
        text = plain_text(value, 2_000)
        if place not in text:
            raise refusal(f"{shown(text)} has no placeholder; put {place} where the id belongs")
        if not text.startswith(begins):
            raise refusal(f"{shown(text)} is not a path; start it with {begins}")
        return text

    return Kind(words, example, read)


def listed(item: Kind, words: str, *, least: int = 0, most: int = LIST_MAX, distinct: bool = False) -> Kind:
    """A list; every error of an item names its position."""

    def read(value: Any, reader: SecretReader | None) -> tuple[Any, ...]:
        if not isinstance(value, list | tuple):
            raise refusal(f"{shown(value)} is not a list; write [{item.example}]")
        if not least <= len(value) <= most:
            limit = f"at least {least}" if len(value) < least else f"at most {most}"
            raise refusal(f"has {len(value)} items; give {limit}")
        elements: list[Any] = []
        faults: list[tuple[str | int, str]] = []
        for index, written in enumerate(value):
            try:
                element = item.read(written, reader)
            except Invalid as invalid:
                faults.append((index, short(invalid.errors[0].message)))
            except Refusal as error:
                faults.append((index, error.message()))
            else:
                if distinct and element in elements:
                    faults.append((index, f"{shown(written)} is listed twice; keep one"))
                elements.append(element)
        if faults:
            raise refusal_inside(faults)
        return tuple(elements)

    return Kind(words, f"[{item.example}]", read, list_schema(item.schema, least=least, most=most))


def argv() -> Kind:
    word = Kind("text", '"PROGRAM", "ARGUMENT"', lambda value, _: plain_text(value, may_be_empty=True))
    words = listed(word, "list of strings: a program and its arguments", least=1)

    def read(value: Any, reader: SecretReader | None) -> Any:
        program = words.read(value, reader)
        if not program[0].strip():
            raise refusal_inside([(0, "is empty; write the name of a program")])
        return program

    return Kind(words.words, words.example, read, words.schema)


# Times and zones


def zone(*, local: bool) -> Kind:
    def read(value: Any, _: object) -> str:
        text = plain_text(value, 100)
        return text if local and text == "local" else check_zone(text)

    words = "IANA time zone or local" if local else "IANA time zone"
    return Kind(words, '"Europe/Berlin"', read)


def time_of_day(*, end: bool = False) -> Kind:
    def read(value: Any, _: object) -> str:
        if isinstance(value, time):
            raise refusal(f'{shown(value)} is not a string; write it in quotes, like "{value:%H:%M}"')
        text = plain_text(value, 100)
        parse_time_of_day(text, "time", end=end)
        return text

    return Kind(f"time of day, 00:00 to {'24:00' if end else '23:59'}", '"09:00"', read)


def day() -> Kind:
    def read(value: Any, _: object) -> str:
        text = str(value) if isinstance(value, date) and not isinstance(value, datetime) else plain_text(value, 100)
        return parse_date(text, "dates").isoformat()

    return Kind("date", '"2026-12-24"', read)


# Addresses


def host() -> Kind:
    def read(value: Any, _: object) -> str:
        address = plain_text(value, 253)
        if address.startswith("[") and address.endswith("]"):
            raise refusal(f"{shown(address)} has brackets; write the address alone, like ::1")
        try:
            ipaddress.ip_address(address)
        except ValueError:
            if not _HOST_NAME.fullmatch(address) or re.fullmatch(r"[\d.]+", address):
                raise refusal(
                    f"{shown(address)} is not an address to listen on; write a host without a port, like 127.0.0.1"
                ) from None
        return address

    return Kind("host", '"127.0.0.1"', read)


def label() -> Kind:
    def read(value: Any, _: object) -> str:
        if not is_label(value):
            raise refusal(f"{shown(value)} is not a label; {LABEL_CURE}")
        return str(value)

    return Kind("label", '"gpu"', read)


def network() -> Kind:
    """An address, or a network such as 10.0.0.0/8."""

    def read(value: Any, _: object) -> str:
        address = plain_text(value, 100)
        try:
            ipaddress.ip_network(address, strict=False)
        except ValueError:
            raise refusal(f"{shown(address)} is not an address or a network; write it like 127.0.0.1") from None
        return address

    return Kind("address or network", '"127.0.0.1"', read)


def is_private(name: str) -> bool:
    """Whether the host, as written, is this machine or in a private network."""
    name = plain_name(name)
    try:
        ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
        return is_loopback(name)
    return not is_public(name)


def url(*, https: bool = False) -> Kind:
    def read(value: Any, _: object) -> str:
        address = plain_text(value, 2_000)
        check_web_address(address, https=https)
        return address

    words = "https URL (http only on this machine)" if https else "http or https URL"
    return Kind(words, '"https://…"', read)


def check_web_address(address: str, *, https: bool = False, password: bool = False) -> None:
    """Refuse an unusable URL. It is quoted only once it is known to contain no password."""
    try:
        parts = urlsplit(address)
        port, server, has_user = parts.port, parts.hostname, "@" in parts.netloc
    except ValueError:
        raise refusal("is not a valid URL; write it like https://host:port/path") from None
    if has_user and not password:
        raise refusal("contains a user or password, which would be shown; remove it from the URL")
    if parts.scheme not in ("http", "https") or not server or port == 0 or not address.isprintable() or " " in address:
        quoted = "" if password or has_user or parts.query else f"{shown(address)} "
        raise refusal(f"{quoted}is not an http URL; write it like https://host:port/path")
    if https and parts.scheme == "http" and not is_loopback(server):
        raise refusal("sends the key unencrypted; write https:// (http:// is for this machine only)")


# Secrets


def secret() -> Kind:
    schema = {"anyOf": [{"type": "string"}, {"type": "object", "additionalProperties": {"type": "string"}}]}
    return Kind("secret", '{env = "NAME"}', _secret, schema)


def _secret(value: Any, reader: SecretReader | None) -> Secret:
    return _reader(reader).secret(value)


def secrets_by_name() -> Kind:
    """Environment variables for a program; any of them may be a secret, so all are masked."""
    return Kind("table of secrets", '{NAME = "value"}', _table("NAME", _secret, _wrong_variable), {"type": "object"})


def variables() -> Kind:
    """Environment variables for a program; a value may be written as a secret."""
    return Kind("table of strings and secrets", '{NAME = "value"}', _table("NAME", _variable, _wrong_variable))


def _wrong_variable(name: str, _: object) -> str | None:
    return None if _VARIABLE.fullmatch(name) else "is not a variable name; use letters, digits and _"


def _variable(written: Any, reader: SecretReader | None) -> str | Secret:
    if isinstance(written, Mapping):
        return _reader(reader).secret(written)
    if not isinstance(written, str):  # not quoted: it may be a malformed secret
        raise refusal('is not a string; write it in quotes, or {env = "NAME"} or {file = "PATH"} for a secret')
    return plain_text(written, may_be_empty=True)


def path_in_json() -> Kind:
    """A path in JSON: keys separated by dots, or a list of keys."""

    def read(value: Any, _: object) -> str | tuple[str, ...]:
        if isinstance(value, list | tuple):
            return tuple(plain_text(part, 200) for part in value)
        return plain_text(value, 200)

    return Kind("dotted key, or list of keys", '"result"', read)


def headers() -> Kind:
    """Headers for every request to a server; any of them may be a secret, so all are masked."""

    def wrong(name: str, value: Secret | None) -> str | None:
        if not _HEADER.fullmatch(name):
            return "is not a header name; use letters, digits and -"
        if name.lower() in _OWN_HEADERS:
            return "is set by the connection itself; remove it"
        is_sendable = value is None or (value.reveal().isprintable() and value.reveal().isascii())
        return None if is_sendable else "has a value that cannot be sent; write it as one line of ASCII"

    return Kind("table of headers", '{X-Name = "value"}', _table("X-Name", _secret, wrong), {"type": "object"})


def _table(
    name: str, read_value: Callable[[Any, SecretReader | None], T], wrong: Callable[[str, T | None], str | None]
) -> Callable[[Any, SecretReader | None], dict[str, T]]:
    def read(value: Any, reader: SecretReader | None) -> dict[str, T]:
        if not isinstance(value, Mapping):
            raise refusal(f'{shown(value)} is not a table; write {{{name} = "value"}}')
        values: dict[str, T] = {}
        faults: list[tuple[str | int, str]] = []
        for key, written in value.items():
            try:
                values[key] = read_value(written, reader)
            except Refusal as error:
                faults.append((key, error.message()))
            fault = wrong(key, values.get(key))
            if fault is not None:
                faults.append((key, fault))
        if faults:
            raise refusal_inside(faults)
        return values

    return read


def store_url() -> Kind:
    def read(value: Any, reader: SecretReader | None) -> SecretUrl:
        secret_url = _reader(reader).url(value)
        address = secret_url.reveal()
        if address.startswith("sqlite:///") and len(address) > len("sqlite:///"):
            return secret_url
        if re.match(r"postgres(?:ql)?://.", address):
            return secret_url
        # Not quoted: it may contain a password.
        raise refusal("is not a store; write sqlite:///FILE or postgresql://user@host/database")

    return Kind("sqlite:///FILE or postgresql://…", '"sqlite:///wakeful.db"', read)


def secret_web_address() -> Kind:
    def read(value: Any, reader: SecretReader | None) -> SecretUrl:
        secret_url = _reader(reader).url(value, hides_path=True)
        check_web_address(secret_url.reveal(), password=True)
        return secret_url

    return Kind("http or https URL, or a secret", '"https://…"', read)


def _reader(reader: SecretReader | None) -> SecretReader:
    return reader or SecretReader(Path(), {})
