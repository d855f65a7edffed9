"""What the settings say about the heartbeat, and where its rows are."""

from dataclasses import dataclass, field
from typing import Any, Final, Literal

from wakeful.core.heartbeat.acknowledgement import AckRules
from wakeful.core.heartbeat.heartbeat import BeatRules
from wakeful.core.schedule.policies import TIMEOUT
from wakeful.core.time.instants import MINUTE, Duration

HEARTBEAT: Final = "heartbeat"
"""The owner of its runs, and the slug that no schedule may have."""

TURN: Final = "turn"
"""The kind of its runs."""


@dataclass(frozen=True, slots=True)
class HeartbeatTerms:
    """How it beats. `enabled` is about beats alone: whoever asks for a turn gets one."""

    enabled: bool = False
    agent: str = "default"
    every: Duration = 30 * MINUTE
    session: Literal["keep", "fresh"] = "keep"
    model: str | None = None
    prompt: str = "Go through what is waiting. If nothing needs attention, answer only HEARTBEAT_OK."
    ack: AckRules = field(default_factory=AckRules)
    beats: BeatRules = field(default_factory=BeatRules)
    timeout: Duration = TIMEOUT

    @property
    def session_config(self) -> dict[str, Any]:
        """How its turns are taken, as a schedule would say it in `sessionConfig`."""
        model = {} if self.model is None else {"model": self.model}
        return {**model, "persistSession": False} if self.session == "fresh" else model

    @property
    def lane(self) -> str:
        """The lane of its agent, shared with the schedules that ask it."""
        return f"agent:{self.agent}"
