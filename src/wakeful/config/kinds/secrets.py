"""The kinds of settings that are secrets, or may have some in them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from wakeful.config.faults import refusal
from wakeful.config.kinds.addresses import check_web_address
from wakeful.config.kinds.reading import STRING, masked, reading_of, shown, taken
from wakeful.config.kinds.texts import plain_text
from wakeful.config.places import dotted
from wakeful.config.secrets import Secret, SecretUrl
from wakeful.core.description import Kind
from wakeful.core.fields import Fields
from wakeful.core.http_headers import MANAGED

_HEADER: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,200}", re.ASCII)
_OWN_HEADERS: Final = MANAGED | {"host"}
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_SCHEMA: Final = {"anyOf": [{"type": "string"}, {"type": "object", "additionalProperties": {"type": "string"}}]}


def _secret(fields: Fields, name: str) -> Secret | None:
    return taken(fields, name, reading_of(fields).secrets.secret)


def _variable(fields: Fields, name: str) -> str | Secret | None:
    def value_of(written: Any) -> str | Secret:
        if isinstance(written, Mapping):
            return reading_of(fields).secrets.secret(written)
        if not isinstance(written, str):  # not quoted: it may be a malformed secret
            raise refusal('is not a string; write it in quotes, or {env = "NAME"} or {file = "PATH"} for a secret')
        return plain_text(written, may_be_empty=True)

    return taken(fields, name, value_of)


def _wrong_variable(name: str, _: object) -> str | None:
    return None if _VARIABLE.fullmatch(name) else "is not a variable name; use letters, digits and _"


def _wrong_header(name: str, value: Secret | None) -> str | None:
    if not _HEADER.fullmatch(name):
        return "is not a header name; use letters, digits and -"
    if name.lower() in _OWN_HEADERS:
        return "is set by the connection itself; remove it"
    is_sendable = value is None or (value.reveal().isprintable() and value.reveal().isascii())
    return None if is_sendable else "has a value that cannot be sent; write it as one line of ASCII"


def _table(
    words: str,
    example: str,
    read_value: Callable[[Fields, str], Any],
    wrong: Callable[[str, Any], str | None],
) -> Kind:
    cure = f'{{{example} = "value"}}'

    def read(fields: Fields, name: str) -> dict[str, Any]:
        written = fields.raw(name)
        if not isinstance(written, Mapping):
            fields.fail(name, f"{shown(written)} is not a table; write {cure}")
            return {}
        values = {}
        for key, value in written.items():
            place = f"{name}.{dotted((key,))}"
            inner = fields.beside({place: value})
            values[key] = read_value(inner, place)
            fields.errors += inner.errors
            if (problem := wrong(key, values[key])) is not None:
                fields.fail(place, problem)
        return values

    return Kind(words, read, {"type": "object"}, masked, cure=cure)


def _store_url(fields: Fields, name: str) -> SecretUrl | None:
    def value_of(value: Any) -> SecretUrl:
        secret_url = reading_of(fields).secrets.url(value)
        address = secret_url.reveal()
        if address.startswith("sqlite:///") and len(address) > len("sqlite:///"):
            return secret_url
        if re.match(r"postgres(?:ql)?://.", address):
            return secret_url
        # Not quoted: it may contain a password.
        raise refusal("is not a store; write sqlite:///FILE or postgresql://user@host/database")

    return taken(fields, name, value_of)


def _secret_url(fields: Fields, name: str) -> SecretUrl | None:
    def value_of(value: Any) -> SecretUrl:
        secret_url = reading_of(fields).secrets.url(value, hides_path=True)
        check_web_address(secret_url.reveal(), password=True)
        return secret_url

    return taken(fields, name, value_of)


SECRET: Final = Kind("secret", _secret, _SCHEMA, masked, cure='{env = "NAME"}')
SECRETS_BY_NAME: Final = _table("table of secrets", "NAME", _secret, _wrong_variable)
"""Environment variables for a program; any of them may be a secret, so all are masked."""
VARIABLES: Final = _table("table of strings and secrets", "NAME", _variable, _wrong_variable)
"""Environment variables for a program; a value may be written as a secret."""
HEADERS: Final = _table("table of headers", "X-Name", _secret, _wrong_header)
"""Headers for every request to a server; any of them may be a secret, so all are masked."""
STORE_URL: Final = Kind("sqlite:///FILE or postgresql://…", _store_url, STRING, str, cure='"sqlite:///wakeful.db"')
SECRET_URL: Final = Kind("http or https URL, or a secret", _secret_url, STRING, str, cure='"https://…"')
