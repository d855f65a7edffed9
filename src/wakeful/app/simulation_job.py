"""The input of a simulation's process: everything that affects the plan, and where to copy it from."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from wakeful.core.simulation.request import SimulationRequest
from wakeful.core.time.instants import Instant
from wakeful.features.heartbeat.rules import HeartbeatTerms
from wakeful.features.money.terms import MoneyTerms
from wakeful.features.schedules.checks import Checked
from wakeful.features.schedules.rules import Terms

Answer: TypeAlias = Literal["simulation", "forecast"]


@dataclass(frozen=True, slots=True)
class SimulationJob:
    """One simulation."""

    answer: Answer
    url: str  # of the store to copy from
    now: Instant
    request: SimulationRequest
    concurrency_max: int
    terms: Terms
    money: MoneyTerms
    heartbeat: HeartbeatTerms | None  # None: this process has no agents
    drafts: tuple[Checked, ...] = ()
    rows: bool = False
