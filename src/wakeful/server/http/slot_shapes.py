"""Shapes of quota slots, for OpenAPI; the definition is described in `config.slots`."""

from typing import Annotated, Any, Literal

from pydantic import Field

from wakeful.server.http.shapes import At, RunId, Shape


class SlotPoint(Shape):
    """One poll of the quota."""

    at: At
    percentage: float | None
    next_reset_time: At | None


class Slot(Shape):
    """A slot: definition and state. The fields of the definition are added from its description (`api`)."""

    name: str
    source: Annotated[Literal["settings", "store", "agent"], Field(description="agent: reported by its turns")]
    status: Literal["new", "warm", "cold", "waking", "exhausted", "failing", "disabled", "off", "invalid"]
    status_reason: str | None
    cure: str | None
    warm: bool
    percentage: float | None
    next_reset_time: Annotated[At | None, Field(description="null if the key is cold")]
    last_reset_time: Annotated[
        At | None, Field(description="the latest known one, even if the provider no longer reports it")
    ]
    window_start: At | None
    time_to_reset: str | None
    exhausted_until: At | None
    level: str | None
    limits: list[Any]
    last_poll: At | None
    wake_pending: bool
    last_wake: At | None
    wake_run: RunId | None
    wake_errors: int
    quota_errors: int
    wake_disabled: bool
    disabled: bool
    last_error: str | None
    unreachable_since: Annotated[
        At | None, Field(description="no connection, or 5xx, since then; does not count as an error")
    ]
    unsent: Annotated[int, Field(description="failed sends of the current wake, which is retried")]
    next_wake: At | None
    next_poll: At | None
    stats: Any
    history: list[SlotPoint]
    created_at: At
    updated_at: At
    version: int


class Slots(Shape):
    """All slots, ordered by name."""

    slots: list[Slot]
