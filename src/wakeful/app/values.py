"""Arguments and results of the Python API."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias, Unpack

from wakeful.app import bootstrap
from wakeful.app.schedule_options import ADD_NAMES, AddOptions, refuse_unknown
from wakeful.app.timing_forms import GivenTiming
from wakeful.core.schedule.actions import ActionSpec
from wakeful.core.time.instants import Instant
from wakeful.features.schedules.views import ScheduleView
from wakeful.observe.stream import Stream
from wakeful.ports.clock import Clock
from wakeful.ports.exchange import ExchangeListener
from wakeful.ports.handlers import BackgroundService
from wakeful.ports.sink import Sink
from wakeful.ports.store import Schedule, Store


@dataclass(frozen=True, slots=True, init=False)
class New:
    """A schedule to be added: what `add` takes, as a value, for `add_many`."""

    slug: str | None
    timing: GivenTiming
    given: AddOptions

    def __init__(self, slug: str | None, timing: GivenTiming, **given: Unpack[AddOptions]) -> None:
        refuse_unknown(given, ADD_NAMES)
        object.__setattr__(self, "slug", slug)
        object.__setattr__(self, "timing", timing)
        object.__setattr__(self, "given", given)


class Declared(NamedTuple):
    """A schedule to be written, with its action and its options as parts of a definition."""

    slug: str
    timing: GivenTiming
    action: ActionSpec
    options: Mapping[str, Any]


MakeListener: TypeAlias = Callable[[], ExchangeListener | None]
"""Creates the observer of outgoing requests, once the sink exists."""

MakeSink: TypeAlias = Callable[[Store, Clock], Sink]
"""Creates the listener for committed changes, once the store and its clock exist."""


MakeService: TypeAlias = Callable[[bootstrap.Parts], BackgroundService]

Watched: TypeAlias = Callable[[], Stream | None]
"""Returns the live stream for subscribers, once the sink exists."""

Guard: TypeAlias = Callable[[Schedule | None], None]
"""Checks what is stored under a slug before it is overwritten, while it is locked; raises to refuse the write."""


class WrittenSchedule(NamedTuple):
    """A schedule as stored by a write, or as a rehearsal would store it."""

    view: ScheduleView
    is_created: bool
    warnings: tuple[str, ...]
    next_times: tuple[Instant, ...]  # the next five, in a rehearsal
    is_rehearsal: bool = False
