"""The definition of a workflow, as its owner wrote it: producers, consumers, and who answers for each."""

import re
from dataclasses import dataclass
from typing import Final, TypeAlias

from wakeful.core.fields import shown
from wakeful.core.schedule.actions import Command, Http
from wakeful.core.time.instants import MINUTE, Duration
from wakeful.core.time.timing import Timing

NAME_PATTERN: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)
HANDLERS_MAX: Final = 100
PHASE_TIMEOUT: Final[Duration] = 5 * MINUTE
"""How long one phase of a handler may take, unless its definition says otherwise."""


@dataclass(frozen=True, slots=True)
class Python:
    """A handler that is a Python function; which one, the process that loads it knows."""

    target: str  # for people: module and name


Answerer: TypeAlias = Http | Command | Python


@dataclass(frozen=True, slots=True)
class Producer:
    """Looks at the outside on a schedule of its own, and publishes what it finds."""

    name: str
    timing: Timing
    publishes: tuple[str, ...]
    answerer: Answerer
    timeout: Duration = PHASE_TIMEOUT


@dataclass(frozen=True, slots=True)
class Consumer:
    """Takes messages, does at most one thing with them outside, and publishes what follows."""

    name: str
    subscribe: tuple[str, ...]
    publishes: tuple[str, ...]
    answerer: Answerer
    mutates: bool = True
    timeout: Duration = PHASE_TIMEOUT


Handling: TypeAlias = Producer | Consumer


@dataclass(frozen=True, slots=True)
class WorkflowDefinition:
    """Everything its owner decides about a workflow; whether it runs is its status, and no part of it."""

    name: str
    producers: tuple[Producer, ...] = ()
    consumers: tuple[Consumer, ...] = ()

    @property
    def handlers(self) -> tuple[Handling, ...]:
        return (*self.producers, *self.consumers)

    @property
    def topics(self) -> dict[str, list[str]]:
        """Every topic that is read, and the consumers that do."""
        found: dict[str, list[str]] = {}
        for consumer in self.consumers:
            for topic in consumer.subscribe:
                found.setdefault(topic, []).append(consumer.name)
        return found


def faulty_name(name: str, what: str) -> str | None:
    """What is wrong with the name of a handler or a topic, and the cure; None if nothing."""
    if NAME_PATTERN.fullmatch(name):
        return None
    return f"{shown(name)} is not a name of a {what}; use letters, digits, '.', '_' and '-', at most 64"
