"""The heartbeat as a Python program writes it: the names of `[heartbeat]`, checked by the same rules."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal

from wakeful.app.bootstrap import resolve_zone
from wakeful.app.plain import plain_options
from wakeful.core.fields import Fields
from wakeful.features.heartbeat.feature import HeartbeatFeature


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    """The heartbeat of an app; the defaults are those of `[heartbeat]` in the settings. With `enabled=False` there are
    no beats, but requested turns still run. `home` is the folder that contains HEARTBEAT.md.

    Raises `Invalid` with every error."""

    every: str | timedelta = "30m"
    agent: str = "default"
    session: Literal["keep", "fresh"] = "keep"
    model: str | None = None
    prompt: str | None = None
    active_hours: Mapping[str, Any] | None = None  # start, end, timezone
    ack_token: str = "HEARTBEAT_OK"  # noqa: S105 - what an agent replies when there is nothing to report
    ack_chars_max: int = 300
    ack_match: Literal["edges", "anywhere"] = "edges"
    check: Mapping[str, Any] | None = None  # {"command": {"argv": [...]}} or {"http": {"url": ...}}, and "on_error"
    spacing_min: str | timedelta = "10s"
    turns_per_hour_max: int = 60
    enabled: bool = True
    home: str | Path | None = None

    def __post_init__(self) -> None:
        self.feature()

    def feature(self) -> HeartbeatFeature:
        """The feature to plug in."""
        from wakeful.features.heartbeat.from_settings import terms_of  # loads the settings reader, like `_read`

        home = None if self.home is None else Path(self.home)
        return HeartbeatFeature(terms_of(_read(self._written()), local_zone=resolve_zone("local")), home=home)

    def _written(self) -> dict[str, Any]:
        names = (name for name in Heartbeat.__slots__ if name != "home")
        return plain_options({name: value for name in names if (value := getattr(self, name)) is not None})


def _read(written: Mapping[str, Any]) -> Any:
    # Imported here, not above, so that an app without a heartbeat does not load the settings reader.
    from wakeful.config.table import read_table
    from wakeful.config.tables import HEARTBEAT

    fields = Fields(written)
    table = read_table(HEARTBEAT, fields)
    fields.finish()
    return table
