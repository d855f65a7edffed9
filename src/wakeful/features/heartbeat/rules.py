"""The heartbeat's settings, and the names of its rows."""

from dataclasses import dataclass, field
from typing import Any, Final, Literal

from wakeful.core.heartbeat.acknowledgement import AckRules
from wakeful.core.heartbeat.heartbeat import BeatRules
from wakeful.core.schedule.policies import TIMEOUT
from wakeful.core.schedule.pre_check import PreCheck
from wakeful.core.time.instants import MINUTE, Duration

HEARTBEAT: Final = "heartbeat"
"""The owner of the heartbeat's runs; reserved, so no schedule may use it as a slug."""

TURN: Final = "turn"
"""The kind of the heartbeat's runs."""


@dataclass(frozen=True, slots=True)
class HeartbeatTerms:
    """How the heartbeat beats. `enabled` concerns beats only: requested turns always run."""

    enabled: bool = False
    agent: str = "default"
    every: Duration = 30 * MINUTE
    session: Literal["keep", "fresh"] = "keep"
    model: str | None = None
    prompt: str = "Go through what is waiting. If nothing needs attention, answer only HEARTBEAT_OK."
    ack: AckRules = field(default_factory=AckRules)
    beats: BeatRules = field(default_factory=BeatRules)
    check: PreCheck | None = None
    timeout: Duration = TIMEOUT

    @property
    def session_config(self) -> dict[str, Any]:
        """The `sessionConfig` of its turns."""
        model = {} if self.model is None else {"model": self.model}
        return {**model, "persistSession": False} if self.session == "fresh" else model

    @property
    def lane(self) -> str:
        """The lane of its agent, shared with the schedules that prompt it."""
        return f"agent:{self.agent}"
