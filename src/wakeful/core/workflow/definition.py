"""The definition of a workflow, as its owner wrote it: producers, consumers, and their handlers."""

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
"""The default time limit of one phase of a handler."""


@dataclass(frozen=True, slots=True)
class Python:
    """A handler that is a Python function; only the process that loads it can call it."""

    target: str  # for people: module and name


Answerer: TypeAlias = Http | Command | Python


@dataclass(frozen=True, slots=True)
class Producer:
    """Checks something outside on its own schedule, and publishes what it finds."""

    name: str
    timing: Timing
    publishes: tuple[str, ...]
    answerer: Answerer
    timeout: Duration = PHASE_TIMEOUT


@dataclass(frozen=True, slots=True)
class Consumer:
    """Takes messages, performs at most one side effect with them, and publishes the result."""

    name: str
    subscribe: tuple[str, ...]
    publishes: tuple[str, ...]
    answerer: Answerer
    mutates: bool = True
    timeout: Duration = PHASE_TIMEOUT


Handling: TypeAlias = Producer | Consumer


@dataclass(frozen=True, slots=True)
class WorkflowDefinition:
    """Everything its owner decides about a workflow; its status (running or not) is not part of it."""

    name: str
    producers: tuple[Producer, ...] = ()
    consumers: tuple[Consumer, ...] = ()

    @property
    def handlers(self) -> tuple[Handling, ...]:
        return (*self.producers, *self.consumers)

    @property
    def topics(self) -> dict[str, list[str]]:
        """Every topic that is read, with its consumers."""
        readers: dict[str, list[str]] = {}
        for consumer in self.consumers:
            for topic in consumer.subscribe:
                readers.setdefault(topic, []).append(consumer.name)
        return readers


def faulty_name(name: str, what: str) -> str | None:
    """The error in the name of a handler or a topic, with the cure; None if it is valid."""
    if NAME_PATTERN.fullmatch(name):
        return None
    return f"{shown(name)} is not a valid {what} name; use letters, digits, '.', '_' and '-', at most 64"
