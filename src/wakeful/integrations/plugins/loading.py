"""Loads the plugins that the settings name, and keeps what they did wrong for the health check."""

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple

from wakeful.config.plugins import Group, Offer, Offers, offers_of
from wakeful.config.secrets import Secret
from wakeful.core.time.instants import HOUR, Instant
from wakeful.integrations.plugins.guard import Fallback, guarded, guarded_function, measured
from wakeful.integrations.system.text import one_line
from wakeful.ports.plugins import VERSION

log = logging.getLogger("wakeful")

REMEMBERED: Final = HOUR
"""How long the health check names what a plugin did wrong, if it did not work since."""

METHODS: Final[Mapping[Group, Sequence[str]]] = {
    "wakeful.agents": ("proves", "knows", "check", "begin", "ask", "close"),
    "wakeful.channels": ("kind", "address", "to", "send", "close"),
    "wakeful.providers": ("mark", "can_wake", "has_statistics", "read", "wake", "statistics", "close"),
    "wakeful.importers": ("find", "open", "read"),
}
"""What the object of a plugin has, by group."""
WORDS: Final[Mapping[str, str]] = {
    "wakeful.agents": "agent",
    "wakeful.channels": "channel",
    "wakeful.providers": "provider",
    "wakeful.importers": "importer",
}


class PluginBroken(Exception):
    """The plugin cannot be used: why."""


class Function(NamedTuple):
    """A plugin that is just a function: an agent that takes a prompt, or a channel that takes a text."""

    call: Callable[..., Any]
    target: str  # its name


@dataclass(frozen=True, slots=True)
class Trouble:
    """What a plugin did wrong."""

    package: str
    kind: str
    what: Literal["load", "raised", "blocked"]
    sentence: str
    at: Instant


class Plugins:
    """The plugins of this process. What they raise and how long they block is reported from any thread."""

    def __init__(self, now: Callable[[], Instant]) -> None:
        self._now = now
        self._packages: tuple[str, ...] = ()
        self._offers = Offers()
        self._made: dict[tuple[str, str], Callable[..., Any]] = {}
        self._troubles: dict[tuple[str, str, str], Trouble] = {}
        self._lock = threading.Lock()

    def name(self, packages: Sequence[str]) -> None:
        """Use these packages from now on, and load all that they offer. It imports them, so it may take long. What is
        loaded stays loaded until the process ends."""
        if tuple(packages) == self._packages:
            return
        self._packages, self._offers = tuple(packages), offers_of(packages)
        with self._lock:
            self._troubles = {key: one for key, one in self._troubles.items() if one.package in packages}
        for package in self._offers.missing:
            self._note(package, "", "load", f"the package {package} is not installed")
        for offer in self._offers.offers:
            try:
                self._load(offer)
            except PluginBroken:
                continue  # noted

    def kinds(self, group: Group) -> tuple[str, ...]:
        """What the packages offer of this group."""
        return self._offers.kinds(group)

    def make(
        self,
        group: Group,
        kind: str,
        settings: Mapping[str, Any],
        fallbacks: Mapping[str, Fallback],
        inner: Mapping[str, Mapping[str, Fallback]] = MappingProxyType({}),
    ) -> Any | Function:
        """The object of a plugin, guarded, as are the objects that the methods in `inner` return; or a function, where
        that is enough. Raises `PluginBroken`."""
        offer = self._offers.find(group, kind)
        if offer is None:
            missing = self._offers.missing
            why = f"{', '.join(missing)} is not installed" if missing else "no package in `plugins` offers it"
            raise PluginBroken(f"there is no {WORDS[group]} of the kind {kind}: {why}")
        factory, report = self._load(offer), _Reporter(self, offer)
        try:
            with measured(report, "its factory"):
                made = factory(_revealed(settings))
        except Exception as error:
            raise PluginBroken(report.raised("its factory", error)) from error
        if group in ("wakeful.agents", "wakeful.channels") and callable(made) and not hasattr(made, METHODS[group][-2]):
            return Function(guarded_function(made, report, "the function"), f"plugin:{offer.package}:{kind}")
        lacking = [name for name in METHODS[group] if not hasattr(made, name)]
        if lacking:
            text = f"{report.named} made an object that lacks {', '.join(lacking)}"
            raise PluginBroken(self._note(offer.package, kind, "load", text))
        report.worked("its factory")
        return guarded(made, report, fallbacks, inner)

    def troubles(self) -> list[Trouble]:
        """What plugins did wrong: what cannot be loaded, and what happened within the last hour."""
        since = self._now() - REMEMBERED
        with self._lock:
            return [one for one in self._troubles.values() if one.what == "load" or one.at >= since]

    def _load(self, offer: Offer) -> Callable[..., Any]:
        """The factory that the entry point names."""
        known = self._made.get((offer.group, offer.kind))
        if known is not None:
            return known
        named = f"the {WORDS[offer.group]} {offer.kind} of {offer.package}"
        try:
            factory = offer.point.load()
            version = getattr(factory, "wakeful_version", VERSION)
        except BaseException as error:  # also SystemExit: a module may end the program that imports it
            if isinstance(error, KeyboardInterrupt):
                raise
            text = f"{named} cannot be imported: {type(error).__name__}: {one_line(str(error))}"
            raise PluginBroken(self._note(offer.package, offer.kind, "load", text)) from None
        if not callable(factory):
            text = f"{named} is not a function: {offer.point.value} is of type {type(factory).__name__}"
            raise PluginBroken(self._note(offer.package, offer.kind, "load", text))
        if version != VERSION:
            text = f"{named} is for version {version!r} of wakeful.plugins; this is version {VERSION}"
            raise PluginBroken(self._note(offer.package, offer.kind, "load", text))
        self._made[offer.group, offer.kind] = factory
        return factory  # type: ignore[no-any-return]

    def _note(self, package: str, kind: str, what: Literal["load", "raised", "blocked"], sentence: str) -> str:
        with self._lock:
            is_new = (package, kind, what) not in self._troubles
            self._troubles[package, kind, what] = Trouble(package, kind, what, sentence, self._now())
        if is_new:
            log.warning("%s", sentence)
        return sentence

    def _forget(self, package: str, kind: str) -> None:
        if (package, kind, "raised") in self._troubles:
            with self._lock:
                self._troubles.pop((package, kind, "raised"), None)


class _Reporter:
    """Reports about one plugin. What it raised is forgotten when the same method works again."""

    def __init__(self, plugins: Plugins, offer: Offer) -> None:
        self._plugins, self._offer = plugins, offer
        self.named = f"the {WORDS[offer.group]} {offer.kind} of {offer.package}"
        self._raised = ""

    def raised(self, method: str, error: Exception) -> str:
        self._raised = method
        text = f"{self.named} raised {type(error).__name__} in {method}: {one_line(str(error))}"
        return self._plugins._note(self._offer.package, self._offer.kind, "raised", text)

    def blocked(self, method: str, seconds: float) -> None:
        text = f"{self.named} blocked the event loop for {seconds:.1f} seconds in {method}; nothing else ran meanwhile"
        self._plugins._note(self._offer.package, self._offer.kind, "blocked", text)

    def worked(self, method: str) -> None:
        if self._raised == method:
            self._raised = ""
            self._plugins._forget(self._offer.package, self._offer.kind)


def _revealed(value: Any) -> Any:
    """The settings as the plugin gets them, with their secrets."""
    match value:
        case Secret():
            return value.reveal()
        case Mapping():
            return {name: _revealed(inner) for name, inner in value.items()}
        case list() | tuple():
            return [_revealed(inner) for inner in value]
        case _:
            return value


class Absent:
    """Stands in for a plugin that cannot be used: each method returns what it would if the plugin raised. Those in
    `plain` are no coroutines."""

    def __init__(self, why: str, fallbacks: Mapping[str, Fallback], plain: Sequence[str] = (), **more: Any) -> None:
        self.__dict__.update(more)
        for name, fallback in fallbacks.items():
            self.__dict__[name] = partial(_at_once if name in plain else _later, fallback, why)


def _at_once(fallback: Fallback, why: str, *_: Any, **__: Any) -> Any:
    return fallback(why)


async def _later(fallback: Fallback, why: str, *_: Any, **__: Any) -> Any:
    return fallback(why)
