"""Actions as values: what a schedule does when it fires. Adapters perform them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from wakeful.core.heartbeat.acknowledgement import AckRules

PASS_ENV_MAX: Final = 100
VARIABLE_PATTERN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)

OUTPUT_MAX: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class Call:
    """A Python callable: a registered name, or `module:function`."""

    target: str
    args: Mapping[str, Any] = field(default_factory=dict)
    isolate: Literal["process"] | None = None


@dataclass(frozen=True, slots=True)
class Command:
    """A program with its arguments; never a shell line."""

    argv: tuple[str, ...]
    cwd: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    stdin: str | None = None
    output_max: int = OUTPUT_MAX
    pass_env: tuple[str, ...] = ()  # variables it gets even though their names look like secrets


@dataclass(frozen=True, slots=True)
class Http:
    """An HTTP request; any 2xx is success."""

    method: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Any = None


@dataclass(frozen=True, slots=True)
class Memory:
    """What a transcript of ours keeps of a turn: this text instead of the prompt, and nothing if the reply is
    silent."""

    text: str
    silence: AckRules


@dataclass(frozen=True, slots=True)
class Prompt:
    """A turn of an agent."""

    text: str
    agent: str = "default"
    session_config: Mapping[str, Any] = field(default_factory=dict)
    memory: Memory | None = None  # None: the prompt and the reply, unchanged


@dataclass(frozen=True, slots=True)
class Event:
    """A system event for the heartbeat."""

    text: str
    context_key: str | None = None


ActionSpec: TypeAlias = Call | Command | Http | Prompt | Event
