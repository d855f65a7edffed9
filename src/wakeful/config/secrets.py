"""Secrets: where they come from, and how they are kept out of all output.

A secret is read once, with the settings, and kept in a value that prints only as a mask. Code that needs the text
calls `reveal`, so every use can be found. Because a secret can still come back from outside (a server that quotes a
header in its response), everything written to a log passes the `Redactor`, which knows the values and the encodings
in which they may appear.
"""

from __future__ import annotations

import base64
import json
import os
import re
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias
from urllib.parse import parse_qsl, quote, quote_plus, unquote, urlsplit, urlunsplit

from wakeful.config.faults import refusal
from wakeful.integrations.system.run_tokens import RUN_TOKEN

MASK: Final = "••••"
SECRET_MAX: Final = 65_536
REDACTED_MIN: Final = 4
"""Shorter secrets are not masked in text: they would match ordinary words."""
REMEMBERED_MAX: Final = 1_000
_CORE_MIN: Final = 8
_HOW: Final = 'write {env = "NAME"}, {file = "PATH"} or a string in quotes'
_ENV_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_TELLING: Final = re.compile(r"pass|secret|token|key|auth|sig|code", re.IGNORECASE)

OriginKind: TypeAlias = Literal["plain", "environment", "secretFile"]


@dataclass(frozen=True, slots=True)
class Origin:
    """The source of a secret: written out, a variable's name, or a file as named in the settings."""

    kind: OriginKind
    name: str | None = None
    path: Path | None = None


PLAIN: Final = Origin("plain")


class Secret:
    """A string that is never shown: printing it in any way gives the mask."""

    __slots__ = ("__value", "origin")

    def __init__(self, value: str, origin: Origin = PLAIN) -> None:
        self.__value = value
        self.origin: Final = origin

    def reveal(self) -> str:
        """The plain text, for the one place that sends it."""
        return self.__value

    @property
    def values(self) -> tuple[str, ...]:
        """The values that must never be shown."""
        return (self.__value,)

    def __str__(self) -> str:
        return MASK

    def __repr__(self) -> str:
        return f"Secret({MASK})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and (other.reveal(), other.origin) == (self.__value, self.origin)

    def __hash__(self) -> int:
        return hash((self.__value, self.origin))


_PATH_SECRET_MIN: Final = 16
"""Shorter parts of a webhook's path are ordinary words, which must not be masked everywhere."""


class SecretUrl:
    """A URL that may contain a password: shown without it, or fully masked if it was given by reference."""

    __slots__ = ("__value", "hides_path", "origin")

    def __init__(self, value: str, origin: Origin = PLAIN, *, hides_path: bool = False) -> None:
        self.__value = value
        self.origin: Final = origin
        self.hides_path: Final = hides_path  # a webhook's path is often its only protection

    def reveal(self) -> str:
        """The whole URL, for the one place that opens it."""
        return self.__value

    @property
    def values(self) -> tuple[str, ...]:
        """The values that must never be shown: its passwords, and all of it if it was given by reference."""
        secrets = [] if self.origin.kind == "plain" else [self.__value]
        parts = urlsplit(self.__value)
        if parts.password:
            secrets += [parts.password, unquote(parts.password)]
        secrets += [value for name, value in parse_qsl(parts.query) if _TELLING.search(name)]
        if self.hides_path:
            secrets += [part for part in parts.path.split("/") if len(part) >= _PATH_SECRET_MIN]
        return tuple(secrets)

    def __str__(self) -> str:
        if self.origin.kind != "plain":
            return MASK
        parts = urlsplit(self.__value)
        netloc, query, path = parts.netloc, parts.query, parts.path
        if self.hides_path:
            path = "/".join(MASK if len(part) >= _PATH_SECRET_MIN else part for part in path.split("/"))
        if parts.password is not None:
            netloc = f"{netloc.rpartition('@')[0].partition(':')[0]}:{MASK}@{netloc.rpartition('@')[2]}"
        if query:
            query = "&".join(_masked_pair(pair) for pair in query.split("&"))
        if (netloc, query, path) == (parts.netloc, parts.query, parts.path):
            return self.__value  # splitting and joining a URL may lose a slash
        return urlunsplit(parts._replace(netloc=netloc, query=query, path=path))

    def __repr__(self) -> str:
        return f"SecretUrl({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SecretUrl) and (other.reveal(), other.origin) == (self.__value, self.origin)

    def __hash__(self) -> int:
        return hash((self.__value, self.origin))


def _masked_pair(pair: str) -> str:
    name, equals, _ = pair.partition("=")
    return f"{name}={MASK}" if equals and _TELLING.search(name) else pair


class SecretReader:
    """Reads the secrets for one load, and records which values and files were used."""

    def __init__(self, home: Path, environ: Mapping[str, str]) -> None:
        self.home = home
        self._environ = environ
        self.values: list[str] = []
        self.files: set[Path] = set()

    def secret(self, written: Any) -> Secret:
        """The secret behind `{env = …}`, `{file = …}` or a plain string."""
        secret = Secret(*self._resolve(written))
        self.values.extend(secret.values)
        return secret

    def url(self, written: Any, *, hides_path: bool = False) -> SecretUrl:
        """Like `secret`, for a URL."""
        value, origin = self._resolve(written)
        try:
            url = SecretUrl(value, origin, hides_path=hides_path)
            self.values.extend(url.values)
        except ValueError:  # unbalanced brackets and the like; the text may contain a password
            raise refusal("is not a valid URL; write it like scheme://host/path") from None
        return url

    def _resolve(self, written: Any) -> tuple[str, Origin]:
        match written:
            case str():
                value, origin, name = written, PLAIN, "it"
            case {"env": str(name), **rest} if not rest:
                value, origin = self._from_environment(name), Origin("environment", name)
            case {"file": str(name), **rest} if not rest:
                path = self._path(name)
                value, origin = self._from_file(name, path), Origin("secretFile", name, path)
            case _:
                # The value is not quoted: it may be a malformed secret.
                raise refusal(f"is not a secret; {_HOW}")
        if not value:
            raise refusal(f"is empty; {_HOW}" if origin is PLAIN else f"{name} is empty; put the secret into it")
        if not value.isprintable():
            raise refusal("contains a line break or another control character; give only the secret, on one line")
        return value, origin

    def _from_environment(self, name: str) -> str:
        if not _ENV_NAME.fullmatch(name):
            raise refusal('env is not a variable name; write it like {env = "WAKEFUL_TOKEN"}')
        value = self._environ.get(name)
        if value is None:
            raise refusal(f"the environment variable {name} is not set; set it in the environment of the daemon")
        return value.strip()

    def _path(self, name: str) -> Path:
        try:
            return self.home / Path(name).expanduser()
        except RuntimeError:
            raise refusal(f"'{name[:80]}' starts with an unknown user's home; write the path in full") from None

    def _from_file(self, name: str, path: Path) -> str:
        self.files.add(path)
        shown = name if len(name) <= 200 else f"{name[:200]}…"
        try:
            content = read_regular_file(path, SECRET_MAX)
        except FileNotFoundError:
            raise refusal(f"the file {shown} does not exist; create it, readable only by you") from None
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else str(error)
            raise refusal(f"the file {shown} cannot be read ({why}); name a readable file") from None
        try:
            return content.decode().strip()
        except UnicodeDecodeError:
            raise refusal(f"the file {shown} is not UTF-8 text; put only the secret into it") from None


def read_regular_file(path: Path, size_max: int) -> bytes:
    """The content of a regular file: a pipe would block and a device never end. Raises OSError or ValueError."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        kind = os.fstat(handle).st_mode
        if stat.S_ISDIR(kind):
            raise ValueError("it is a folder")
        if not stat.S_ISREG(kind):
            raise ValueError("it is not a regular file")
        with os.fdopen(handle, "rb", closefd=False) as file:
            content = file.read(size_max + 1)
    finally:
        os.close(handle)
    if len(content) > size_max:
        raise ValueError(f"it is larger than {size_max // 1024} KiB")
    return content


class Redactor:
    """Masks every known secret in text.

    It keeps secrets that were replaced, because a response that quotes the old one may still arrive.
    """

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._values: dict[str, None] = {}
        self._pattern: re.Pattern[str] | None = None
        self.learn(values)

    def learn(self, values: Iterable[str]) -> None:
        """Add secrets."""
        fresh = [value for value in values if len(value) >= REDACTED_MIN and value not in self._values]
        if not fresh:
            return
        self._values.update(dict.fromkeys(fresh))
        for oldest in list(self._values)[: max(0, len(self._values) - REMEMBERED_MAX)]:
            del self._values[oldest]
        forms = {form for value in self._values for form in _forms(value)}
        # Longest first: a secret that contains another one must be masked as a whole.
        longest_first = sorted(forms, key=lambda form: (-len(form), form))
        self._pattern = re.compile("|".join(map(re.escape, longest_first)))

    def redact(self, text: str) -> str:
        """The text with every secret masked, plain or encoded."""
        text = RUN_TOKEN.sub(MASK, text)
        return text if self._pattern is None else self._pattern.sub(MASK, text)


def _forms(value: str) -> set[str]:
    """The forms in which a secret may appear in text: URLs, JSON, Python's repr, base64."""
    escaped = {quote(value, safe=""), quote(value), quote_plus(value), quote_plus(value, safe="/")}
    forms = {
        value,
        *escaped,
        *(re.sub(r"%[0-9A-F]{2}", lambda match: match[0].lower(), form) for form in escaped),
        json.dumps(value)[1:-1],
        json.dumps(value, ensure_ascii=False)[1:-1],
        repr(value)[1:-1],
        *_base64_forms(value.encode(errors="surrogatepass")),
    }
    return {form for form in forms if len(form) >= REDACTED_MIN}


def _base64_forms(value: bytes) -> Iterable[str]:
    """The secret in base64, alone or inside something longer (such as `user:password`).

    Three bytes become four characters, so the encoding of a secret depends on how many bytes precede it. For each of
    the three alignments only the characters that depend on the secret alone are stable.
    """
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        whole = encode(value).decode()
        yield whole
        yield whole.rstrip("=")
        for before in range(3):
            first = -(-before * 8 // 6)
            last = (before + len(value)) * 8 // 6
            core = encode(bytes(before) + value).decode()[first:last]
            if len(core) >= _CORE_MIN:
                yield core
