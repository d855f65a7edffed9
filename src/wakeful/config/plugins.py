"""The kinds that plugins offer, as their installed packages say: nothing of a plugin is imported here.

A package offers kinds of agents, channels, quota providers and imports as entry points. Only the packages in `plugins`
of `wakeful.toml` are looked at, so that installing a package changes nothing by itself.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from wakeful.config.kinds.reading import masked, reading_of, taken
from wakeful.config.kinds.texts import matching
from wakeful.core.description import Kind
from wakeful.core.fields import Fields

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

Group: TypeAlias = Literal["wakeful.agents", "wakeful.channels", "wakeful.providers", "wakeful.importers"]
GROUPS: Final[tuple[Group, ...]] = ("wakeful.agents", "wakeful.channels", "wakeful.providers", "wakeful.importers")
PACKAGE: Final = matching(
    "name of a package",
    re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,98}[A-Za-z0-9])?"),
    "write the name that it is installed by",
    example='"wakeful-pager"',
)
_KIND: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")
_SECRET: Final = re.compile(r"pass|secret|token|key|auth|credential", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Offer:
    """One kind that a package offers."""

    group: str
    kind: str
    package: str
    point: EntryPoint


@dataclass(frozen=True, slots=True)
class Offers:
    """What the named packages offer, and those that are not installed."""

    offers: tuple[Offer, ...] = ()
    missing: tuple[str, ...] = ()

    def find(self, group: Group, kind: str) -> Offer | None:
        """The first one with this name, in the order of `plugins`."""
        return next((one for one in self.offers if (one.group, one.kind) == (group, kind)), None)

    def may_have(self, group: Group, kind: str) -> bool:
        """Whether it is offered, or may be by a package that is not installed."""
        return self.find(group, kind) is not None or (bool(self.missing) and _KIND.fullmatch(kind) is not None)

    def kinds(self, group: Group) -> tuple[str, ...]:
        return tuple(one.kind for one in self.offers if one.group == group)


def offers_of(packages: Sequence[object]) -> Offers:
    """What these packages offer. A name that is no text is refused by the kind of the setting."""
    if not packages:
        return Offers()
    from importlib.metadata import PackageNotFoundError, distribution  # few homes have plugins

    offers: list[Offer] = []
    missing: list[str] = []
    for package in (name for name in packages if isinstance(name, str)):
        try:
            points = distribution(package).entry_points
        except (PackageNotFoundError, ValueError):
            missing.append(package)
            continue
        offers += [Offer(one.group, one.name, package, one) for one in points if one.group in GROUPS]
    return Offers(tuple(offers), tuple(missing))


def _value(written: Any, name: str, fields: Fields) -> Any:
    secrets = reading_of(fields).secrets
    match written:
        case {"env": str(), **rest} | {"file": str(), **rest} if not rest:
            return secrets.secret(written)
        case str() if written and _SECRET.search(name):
            return secrets.secret(written)
        case Mapping():
            return {str(key): _value(inner, str(key), fields) for key, inner in written.items()}
        case list():
            return [_value(inner, name, fields) for inner in written]
        case _:
            return written


def _read(fields: Fields, name: str) -> Any:
    def values(written: Mapping[str, Any]) -> dict[str, Any]:  # not `_value`: `file` is a setting here, not a secret's
        return {key: _value(inner, key, fields) for key, inner in written.items()}

    return taken(fields, name, values)


SETTINGS_OF_PLUGIN: Final = Kind("any", _read, {"type": "object"}, masked)
"""The settings that the plugin itself reads. What is named like a secret, or written as one, is one."""
