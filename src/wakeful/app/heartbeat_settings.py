"""The heartbeat as a Python program writes it: the words of `[heartbeat]`, checked by the same rules."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from wakeful.app.bootstrap import resolve_zone
from wakeful.core.errors import FieldError, Invalid
from wakeful.features.heartbeat.feature import HeartbeatFeature
from wakeful.features.heartbeat.from_settings import terms_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    """How an agent beats; what is left out is as in `[heartbeat]` of the settings. `enabled=False` gives it no beats of
    its own: whoever asks for a turn gets one. `home` is where HEARTBEAT.md is looked for.

    Raises `Invalid` with every fault."""

    every: str = "30m"
    agent: str = "default"
    session: Literal["keep", "fresh"] = "keep"
    model: str | None = None
    prompt: str | None = None
    active_hours: Mapping[str, str] | None = None  # start, end, timezone
    ack_token: str = "HEARTBEAT_OK"  # noqa: S105 - what an agent says when there is nothing
    ack_chars_max: int = 300
    ack_match: Literal["edges", "anywhere"] = "edges"
    spacing_min: str = "10s"
    turns_per_hour_max: int = 60
    enabled: bool = True
    home: str | Path | None = None

    def __post_init__(self) -> None:
        self.feature()

    def feature(self) -> HeartbeatFeature:
        """What is plugged in."""
        home = None if self.home is None else Path(self.home)
        return HeartbeatFeature(terms_of(_read(self._written()), local_zone=resolve_zone("local")), home=home)

    def _written(self) -> dict[str, Any]:
        names = (name for name in Heartbeat.__slots__ if name != "home")
        return {name: value for name in names if (value := getattr(self, name)) is not None}


def _read(written: Mapping[str, Any]) -> Any:
    # Here, and not above: whoever has no heartbeat need not wait for the reader of settings.
    from pydantic import ValidationError

    from wakeful.config.messages import faults_of
    from wakeful.config.model import Heartbeat as Table

    try:
        return Table.model_validate(written)
    except ValidationError as error:
        details = error.errors(include_url=False)
    raise Invalid(
        *(
            FieldError(".".join(map(str, place)), message)
            for detail in details
            for place, message in faults_of(detail, written)
        )
    )
